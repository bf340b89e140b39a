"""Whether our verdicts on BFCL's single-turn questions are those of the public checker.

    pip install --no-deps --target FOLDER bfcl_eval==2026.3.23
    python tests/benchmarks/bfcl_agreement.py --package FOLDER [--category NAME ...] [--json FILE]
        [--limit N] [--store URL --run NAME [--only-real]]

Every question gets right and wrong answers made from its gold (``bfcl_outputs.py``); with
``--store`` also the answers that a model gave in an evaluation. Both checkers judge each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bfcl_outputs import Calls, Output, free_outputs, outputs, real_output
from bfcl_upstream import Question, Said, Upstream, read_questions

from agentkit.episodes import Episode, Turn
from agentkit.evaluation.expectations import AllowedCalls
from agentkit.evaluation.task import Benchmark, Task
from agentkit.evaluation.verifiers import Scene, verifier_for
from agentkit.library import EpisodeFilter, open_store
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.metrics.allowed_values import gold_problems, match_allowed_values
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.bfcl import CATEGORIES, load_bfcl

SHOWN = 5
"""How many differences of a class are printed."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """An output on which the two checkers do not agree, or upstream raised."""

    task_id: str
    output: Output
    ours: bool
    upstream: Said
    reason: str

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        return {
            "task": self.task_id,
            "output": self.output.kind,
            "calls": repr(self.output.calls),
            "ours": self.ours,
            "upstream": self.upstream.valid,
            "upstream_says": self.upstream.reason,
            "class": self.reason,
        }


@dataclass(kw_only=True)
class Agreement:
    """How one category compares."""

    category: str
    items: int = 0
    outputs: int = 0
    passed: int = 0
    raised: int = 0
    not_json: int = 0
    unsayable: int = 0
    gold_passed: int = 0
    gold_errors: list[str] = field(default_factory=list)
    upstream_gold: int = 0
    disagreeing: set[str] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)

    def add(self, difference: Difference | None) -> None:
        """Count one output."""
        self.outputs += 1
        if difference is None:
            return
        self.differences.append(difference)
        if difference.upstream.valid is None:
            self.raised += 1
        elif not difference.output.is_json:
            self.not_json += 1
        else:
            self.disagreeing.add(difference.task_id)

    @property
    def same_outputs(self) -> float:
        """The share of outputs that JSON calls can hold on which the verdicts are the same."""
        counted = len(self.differences) - self.raised - self.not_json
        return 1 - counted / max(self.outputs, 1)

    @property
    def classes(self) -> Counter[str]:
        """How many differences of each class."""
        return Counter(one.reason for one in self.differences)

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        return {
            "category": self.category,
            "items": self.items,
            "outputs": self.outputs,
            "passed": self.passed,
            "upstream_raised": self.raised,
            "differ_not_json": self.not_json,
            "no_source_text": self.unsayable,
            "outputs_that_agree": round(self.same_outputs, 6),
            "gold_passes_ours": self.gold_passed,
            "gold_passes_upstream": self.upstream_gold,
            "gold_errors": self.gold_errors,
            "items_that_differ": sorted(self.disagreeing),
            "classes": dict(self.classes),
            "differences": [one.to_json() for one in self.differences[:200]],
        }


class Comparison:
    """Both checkers over one folder of data.

    Args:
        package: The folder that ``bfcl_eval`` lies in.
        only_real: Compare on answers of a model alone.
    """

    def __init__(self, package: Path, *, only_real: bool = False) -> None:
        self.only_real = only_real
        self.data = package / "bfcl_eval" / "data"
        self.upstream = Upstream(package)
        self.benchmark: Benchmark = load_bfcl(self.data)
        self._tasks = {task.task_id: task for task in self.benchmark.tasks}
        self._known = {one.name: one for one in self.benchmark.definitions}

    def category(
        self, category: str, limit: int | None = None, real: Mapping[str, list[Calls | None]] = {}
    ) -> Agreement:
        """Compare on every question of a category, or on the first so many."""
        agreement = Agreement(category=category)
        for question in read_questions(self.data, category)[:limit]:
            if self.only_real and question.task_id not in real:
                continue
            agreement.items += 1
            asyncio.run(self._question(question, agreement, real.get(question.task_id, [])))
        return agreement

    async def _question(
        self, question: Question, agreement: Agreement, real: Iterable[Calls | None]
    ) -> None:
        task = self._tasks[question.task_id]
        definitions = self.definitions(task)
        names = dict(zip([one["name"] for one in question.function], task.offered, strict=False))
        self._gold(question, task, definitions, agreement)
        spoken = language_of(task)
        language = "python" if spoken is None else spoken.name
        made: Iterable[Output] = ()
        if not self.only_real:
            made = (
                outputs(question.gold, question.function, language)
                if question.gold
                else free_outputs(question.function)
            )
        seen = [real_output(calls, question.function, language) for calls in real]
        gold_passed = upstream_gold = False
        for output in (*made, *seen):
            if not self._can_be_said(question, output):
                agreement.unsayable += 1
                continue
            ours = await self._ours(task, definitions, tool_calls(output.calls, names))
            source = output.calls if output.source is None else output.source
            said = self.upstream.judge(question, decoded(source))
            agreement.passed += ours
            if output.kind.startswith("gold:"):
                gold_passed |= ours
                upstream_gold |= bool(said.valid)
            different = said.valid is not ours
            agreement.add(
                Difference(
                    task_id=question.task_id,
                    output=output,
                    ours=ours,
                    upstream=said,
                    reason=self.reason(question, task, output, names, said),
                )
                if different
                else None
            )
        agreement.gold_passed += gold_passed
        agreement.upstream_gold += upstream_gold

    async def _ours(
        self, task: Task, definitions: Sequence[ToolDefinition], calls: Sequence[ToolCall]
    ) -> bool:
        """Our verdict, by the verifiers that ``agentkit eval`` judges episodes with."""
        turn = Turn(message=AssistantMessage(tool_calls=tuple(calls)))
        episode = Episode(episode_id="1", request=task.request, turns=(turn,))
        scene = Scene(definitions=tuple(definitions))
        verdicts = [await verifier_for(one, scene).verify(episode) for one in task.expects]
        broken = [verdict for verdict in verdicts if verdict.fault == "checker_error"]
        if broken:
            raise RuntimeError(f"{task.task_id}: {broken[0].evidence[0]}")
        return all(verdict.passed for verdict in verdicts)

    def _can_be_said(self, question: Question, output: Output) -> bool:
        """Whether upstream reads the source text of JSON values as just these values."""
        if output.calls is None or output.source is None:
            return True
        schemas = {one["name"]: one["parameters"]["properties"] for one in question.function}
        for (name, given), (_, texts) in zip(output.calls, output.source, strict=True):
            for argument, value in given.items():
                schema = schemas.get(name, {}).get(argument)
                if isinstance(value, str) or schema is None:
                    continue
                found = self.upstream.read(question.category, texts[argument], schema)
                if found not in (value, texts[argument]):
                    return False
        return True

    def _gold(
        self,
        question: Question,
        task: Task,
        definitions: Sequence[ToolDefinition],
        agreement: Agreement,
    ) -> None:
        problems = gold_problems(task.gold, definitions, language=language_of(task))
        agreement.gold_errors.extend(f"{question.task_id}: {problem}" for problem in problems)

    def definitions(self, task: Task) -> list[ToolDefinition]:
        """The tools of a question."""
        return [self._known[name] for name in task.offered]

    def reason(
        self,
        question: Question,
        task: Task,
        output: Output,
        names: Mapping[str, str],
        said: Said,
    ) -> str:
        """The class of a difference."""
        if said.valid is None:
            return f"upstream raises: {said.reason.split(':')[0]}"
        calls = output.calls or ()
        if said.reason.startswith("parallel"):
            matched = match_allowed_values(
                tool_calls(calls, names),
                task.gold,
                self.definitions(task),
                language=language_of(task),
            )
            ordered = tuple(calls[at] for _, at in matched.pairs)
            if matched.passed and self.upstream.judge(question, decoded(ordered)).valid:
                return "upstream takes the first call that fits"
        if output.calls is None:
            return "arguments that can not be read count as a call where none is expected"
        if not output.is_json:
            return "a tuple, which no JSON call holds"
        if any(
            isinstance(option, dict) and any(isinstance(one, str) for one in option.values())
            for call in task.gold
            for allowed in call.allowed.values()
            for option in allowed
        ):
            return "gold has one text where a list of options is due"
        return f"unexplained: {output.kind}"


def language_of(task: Task) -> Any:
    """What the values of a task are written in."""
    return next((one.language for one in task.expects if isinstance(one, AllowedCalls)), None)


def tool_calls(calls: Calls | None, names: Mapping[str, str]) -> list[ToolCall]:
    """Calls as our runtime holds them; names are those of the catalogue."""
    if calls is None:
        return [ToolCall(call_id="0", name=next(iter(names.values()), "x"), malformed="{")]
    return [
        ToolCall(call_id=str(at), name=names.get(name, name), arguments=arguments)
        for at, (name, arguments) in enumerate(calls)
    ]


def decoded(calls: Calls | None) -> list[dict[str, Any]] | None:
    """Calls as upstream's decoder gives them."""
    return None if calls is None else [{name: arguments} for name, arguments in calls]


def real_outputs(
    url: str, run: str, definitions: Iterable[ToolDefinition]
) -> dict[str, list[Calls | None]]:
    """What a model called in an evaluation, by task."""
    originals = {one.name: one.origin.original_name or one.name for one in definitions}
    found: dict[str, list[Calls | None]] = {}
    store = open_store(url)
    try:
        for episode in store.select(EpisodeFilter(labels={"run": run})):
            broken = any(call.malformed is not None for call in episode.calls)
            calls = tuple(
                (originals.get(call.name, call.name), dict(call.arguments))
                for call in episode.calls
            )
            found.setdefault(episode.metadata["task"], []).append(None if broken else calls)
    finally:
        store.close()
    return found


def show(agreement: Agreement) -> None:
    """One line for a category, and its differences by class."""
    same = agreement.items - len(agreement.disagreeing)
    print(
        f"{agreement.category:24} {agreement.items:5} items {agreement.outputs:7} outputs "
        f"{agreement.passed:6} right  gold {agreement.gold_passed}/{agreement.upstream_gold} "
        f"same on all outputs {same / max(agreement.items, 1):8.3%} of items, "
        f"{agreement.same_outputs:.4%} of outputs; upstream raised {agreement.raised}, "
        f"not JSON {agreement.not_json}, no source text {agreement.unsayable}"
    )
    for reason, count in agreement.classes.most_common():
        print(f"    {count:6} {reason}")
        examples = [one for one in agreement.differences if one.reason == reason][:SHOWN]
        if reason.startswith("unexplained"):
            for one in examples:
                print(f"           {one.task_id} ours {one.ours} upstream {one.upstream}")
                print(f"           {one.output.calls!r:.300}")
    for problem in agreement.gold_errors:
        print(f"    gold error: {problem}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--category", action="append", choices=list(CATEGORIES))
    parser.add_argument("--limit", type=int, help="only the first so many questions of each")
    parser.add_argument("--store", help="URL of a store with episodes of an evaluation")
    parser.add_argument("--run", default="", help="name of the run in that store")
    parser.add_argument("--only-real", action="store_true", help="only the answers in the store")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    started = time.perf_counter()
    comparison = Comparison(options.package, only_real=options.only_real)
    real = (
        real_outputs(options.store, options.run, comparison.benchmark.definitions)
        if options.store
        else {}
    )
    found = []
    for category in options.category or CATEGORIES:
        found.append(comparison.category(category, options.limit, real))
        show(found[-1])
    print(f"{time.perf_counter() - started:.0f} s")
    if options.json:
        options.json.write_text(json.dumps([one.to_json() for one in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
