"""``agentkit bench opaque``: libraries learned for undocumented functions, asked side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agentkit._waiting import wait_for
from agentkit.cli.options import Answers, AsJson, command
from agentkit.cli.output import LineProgress, print_json, print_table, right, say
from agentkit.cli.stores import opened
from agentkit.errors import UsageError
from agentkit.evaluation import EvaluationSettings, episodes_of_run, evaluate
from agentkit.evaluation.settings import EvaluationLabels
from agentkit.library import EpisodeStore, Library
from agentkit.metrics import Interval, Observation, bootstrap_interval
from agentkit.models.base import ChatModel, ModelSettings, resolve_model
from agentkit.retrieval.cards import estimate_tokens, schema_text
from agentkit_bench.opaque_tools import (
    LIBRARIES,
    OPACITIES,
    Half,
    Learned,
    Opacity,
    OpaqueTools,
)

_ANSWER = ModelSettings(temperature=0.0, max_tokens=160)
_HALVES: tuple[Half, Half] = (0, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What became of one question: a call that the function takes, and the right one."""

    valid: bool
    right: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """How one library did, on both halves of the questions.

    Attributes:
        opacity: What was taken away.
        library: Which library.
        model: What answered; empty when nothing was asked.
        parameters: Parameters that there are.
        names: How many of them the definitions name.
        types: How many of them they name with their type.
        tokens: Estimated tokens of a definition, on average.
        cpu_seconds: CPU time that learning took; 0 where nothing was learned here.
        promoted: Changes that passed every check.
        held: Changes that did not.
        answers: What became of each question, by its id.
    """

    opacity: Opacity
    library: str
    model: str
    parameters: int
    names: int
    types: int
    tokens: float
    cpu_seconds: float
    promoted: int
    held: int
    answers: Mapping[str, Answer]

    def gain(self, other: Row, what: str) -> Interval:
        """Valid or right answers more than with another library, as a share, paired."""
        return bootstrap_interval(
            Observation(
                value=getattr(answer, what) - getattr(other.answers[question], what),
                task=question,
            )
            for question, answer in self.answers.items()
        )

    def to_json(self) -> dict[str, Any]:
        """The row as a JSON object, each question with its answer."""
        return asdict(self)


@command()
def opaque(
    folder: str,
    *,
    model: tuple[str, ...] = (),
    opacity: tuple[Opacity, ...] = (),
    library: tuple[str, ...] = (),
    answers: Answers,
    as_json: AsJson,
) -> None:
    """Learn what undocumented functions take, and compare with ToolObserver.

    Each library learns from recorded attempts at one question of a function and answers the other.
    Without --model nothing is asked: the table shows how many parameters are recovered.

    Args:
        folder (FOLDER): The recorded data of OpaqueToolsBench, one .jsonl.gz file a kind.
        model (NAME): Asks this model.
        opacity: What was taken away: the name and the parameters; these and the description; or
            every name of a tool and every description.
        answers: What is there is not asked again.
        library (NAME): Only this library; by default opaque, evidence, evidence-later,
            observer-best, observer-last, observer-own and original.
        as_json: Print JSON, with the answer to each question.

    Examples:
      agentkit bench opaque data/opaque_tools
      agentkit bench opaque data/opaque_tools --model local:smollm2-135m
    """
    if unknown := [name for name in library if name not in LIBRARIES]:
        raise UsageError(f"there is no library {unknown[0]!r}; use some of {', '.join(LIBRARIES)}")
    libraries = [name for name in LIBRARIES if not library or name in library]
    with opened(answers) as store:
        comparison = Comparison(models=tuple(map(resolve_model, model)), store=store)
        for level in opacity or OPACITIES:
            wait_for(comparison.add(OpaqueTools(Path(folder), level), libraries))
    if as_json:
        print_json([row.to_json() for row in comparison.rows])
    else:
        _print(comparison.rows)


class Comparison:
    """Libraries side by side.

    Args:
        models: What answers.
        store: Keeps the answers; what it holds is not asked again.
    """

    def __init__(self, *, models: Sequence[ChatModel], store: EpisodeStore) -> None:
        self.rows: list[Row] = []
        self._models, self._store = models, store

    async def add(self, data: OpaqueTools, libraries: Sequence[str]) -> None:
        """Learn each library on one half, describe it, and ask the other half with it."""
        for name in libraries:
            learned = {half: await _learned(data, name, half) for half in _HALVES}
            row = _described(data, name, [*learned.values()])
            self.rows += [
                replace(row, model=model.name, answers=await self._ask(data, row, learned, model))
                for model in self._models
            ] or [row]

    async def _ask(
        self, data: OpaqueTools, row: Row, learned: Mapping[Half, Learned], model: ChatModel
    ) -> Mapping[str, Answer]:
        answers = {}
        for half, one in learned.items():
            benchmark = data.benchmark(half)
            progress = LineProgress(f"Asking with {row.library}, {row.opacity}, half {half + 1}")
            for at, task in enumerate(benchmark.tasks):
                progress(at, len(benchmark.tasks))
                [name] = task.offered
                digest = one.library[name].definition.digest[:16]
                run = f"opaque/{half}/{digest}/{model.name}"  # alike, asked once
                await evaluate(
                    replace(benchmark, tasks=(task,)),
                    model=model,
                    store=self._store,
                    run=run,
                    library=Library([one.library[name].definition]),
                    settings=EvaluationSettings(settings=_ANSWER),
                )
                for episode in episodes_of_run(self._store, run):
                    labels, verdict = EvaluationLabels.of(episode), episode.verdict
                    if labels is not None and verdict is not None:
                        valid = verdict.metrics["valid"] == 1.0
                        answers[labels.task] = Answer(valid=valid, right=verdict.passed)
            progress(len(benchmark.tasks), len(benchmark.tasks))
        return answers


async def _learned(data: OpaqueTools, name: str, half: Half) -> Learned:
    """The library that answers a half of the questions."""
    other: Half = 1 if half == 0 else 0
    match name:
        case "evidence" | "evidence-later":
            return await data.learned(other, later=name == "evidence-later")
        case "observer-best":
            library = data.observed(other, "best")
        case "observer-last":
            library = data.observed(other, "last")
        case "observer-own":
            library = data.observed(half, "best")
        case "original":
            library = Library(data.originals)
        case _:
            library = Library(data.definitions)
    return Learned(library=library)


def _described(data: OpaqueTools, name: str, learned: Sequence[Learned]) -> Row:
    counts = [data.recovered(one.library) for one in learned]
    sizes = [
        estimate_tokens(schema_text(tool.definition)) for one in learned for tool in one.library
    ]
    return Row(
        opacity=data.opacity,
        library=name,
        model="",
        parameters=sum(total for total, _, _ in counts),
        names=sum(names for _, names, _ in counts),
        types=sum(types for _, _, types in counts),
        tokens=sum(sizes) / len(sizes),
        cpu_seconds=sum(one.cpu_seconds for one in learned),
        promoted=sum(one.promoted for one in learned),
        held=sum(one.held for one in learned),
        answers={},
    )


def _print(rows: Sequence[Row]) -> None:
    """A table for each level of opacity and model."""
    for key in dict.fromkeys((row.opacity, row.model) for row in rows):
        table = [row for row in rows if (row.opacity, row.model) == key]
        say(f"\n{key[0]}" + (f", answered by {key[1]}" if key[1] else ""))
        base = next((row for row in table if row.library == "opaque"), None)
        titles = ["names", "types", "tokens", "CPU s"]
        titles += ["valid", "right", "right against opaque"] if key[1] else []
        print_table(["library", *map(right, titles)], [_cells(row, base) for row in table])
    for name in dict.fromkeys(row.library for row in rows):
        say(f"{name}: {LIBRARIES[name]}")


def _cells(row: Row, base: Row | None) -> tuple[str, ...]:
    cells = (
        row.library,
        f"{row.names / row.parameters:.0%}",
        f"{row.types / row.parameters:.0%}",
        f"{row.tokens:.0f}",
        f"{row.cpu_seconds:.1f}" if row.cpu_seconds else "",
    )
    if not row.model:
        return cells
    answers = row.answers.values()
    valid, correct = sum(one.valid for one in answers), sum(one.right for one in answers)
    found = row.gain(base, "right") if base is not None and base is not row else None
    ends = [] if found is None else [100 * end for end in (found.value, found.low, found.high)]
    gain = "{:+.0f} [{:+.0f}, {:+.0f}]".format(*ends) if ends else ""
    return (*cells, f"{valid} of {len(answers)}", f"{correct} of {len(answers)}", gain)
