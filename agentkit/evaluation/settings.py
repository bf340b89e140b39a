"""Settings of a benchmark run, its progress, and the labels of its episodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from agentkit.episodes import Episode, FailureLabel, RefineMode
from agentkit.episodes.labels import is_extra_record, is_imported
from agentkit.errors import UsageError
from agentkit.library import EpisodeFilter, EpisodeStore
from agentkit.models.base import ModelSettings, ToolChoice

_MOST_DIGITS = 18
"""More than any attempt has, and few enough for Python to read at all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationLabels:
    """An episode's place in the run of a benchmark.

    Episodes hold it as metadata, which is foreign text once it comes from a store or a file. So it
    is read leniently: only ``task`` has to be there, and what is not a number stands for the first.

    Attributes:
        run: Name of the run.
        benchmark: Name and release of the questions.
        settings: How they were asked, as the text of ``settings_text``.
        task: Id of the task.
        category: Category of the task.
        attempt: Which try at the task it is of, from 0.
        user_turn: Which of the things the user says it answers, from 0.
        user_turns: How many the user says in the whole attempt.
        ends: Whether the attempt ends with it; one that a model error cut short never does.

    Example:
        >>> labels = EvaluationLabels(run="r", benchmark="b", task="t", ends=True)
        >>> labels.to_metadata()["ends"]
        'true'
    """

    run: str = ""
    benchmark: str = ""
    settings: str = ""
    task: str = ""
    category: str = ""
    attempt: int = 0
    user_turn: int = 0
    user_turns: int = 1
    ends: bool = False

    @classmethod
    def of(cls, episode: Episode) -> EvaluationLabels | None:
        """The labels of an episode; None when it has no label ``task``, so is of no evaluation."""
        found = episode.metadata
        if "task" not in found:
            return None
        texts = ("run", "benchmark", "settings", "task", "category")
        return cls(
            **{name: str(found.get(name, "")) for name in texts},
            attempt=_whole(found.get("attempt", "")),
            user_turn=_whole(found.get("user_turn", "")),
            user_turns=max(1, _whole(found.get("user_turns", ""))),
            ends=found.get("ends") == "true",
        )

    def to_metadata(self) -> dict[str, str]:
        """The labels as an episode holds them."""
        ending = {"ends": "true"} if self.ends else {}
        names = (one.name for one in fields(self) if one.name != "ends")
        return {name: str(getattr(self, name)) for name in names} | ending


def _whole(label: object) -> int:
    text = str(label)
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else 0


def episodes_of_run(store: EpisodeStore, run: str) -> Iterator[Episode]:
    """The episodes of one run, newest first.

    Shadow runs and views bear the labels of the attempt that they repeat, and are not attempts.
    What was imported is none of ours: anybody could have written its answers.

    Args:
        store: Where they are kept.
        run: The run's name.
    """
    found = store.select(EpisodeFilter(labels={"run": run}))
    labelled = ((episode, episode.metadata) for episode in found)
    return (one for one, of in labelled if not (is_extra_record(of) or is_imported(of)))


ToolSource: TypeAlias = Literal["given", "retrieved"]
"""The source of the offered tools: the benchmark's own choice for each question, or retrieval."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationSettings:
    """Settings of a run. Two runs with equal settings and models are repetitions of each other.

    Attributes:
        tools: ``given`` offers the tools that the benchmark names for each question, with the
            library's definitions of them; ``retrieved`` lets the agent find them in the library.
        refine: How proposed calls are refined.
        max_refinements: Most refinement rounds a turn.
        attempts: How often each task is tried, for pass@k and pass^k.
        max_steps: Model turns for each thing the user says. None: one where no tool is run, as in
            the single-turn benchmarks, and 21 in an environment, as in BFCL's multi-turn part.
        tool_choice: Whether the model may or must call a tool.
        instructions: A system message before the task's own; the name of instructions of the
            library, such as ``instructions/support``, stands for these.
        examples: How many worked calls of each tool the model is shown.
        settings: How to generate. From its seed, if there is one, each attempt at each task has
            one of its own, see ``attempt_seed``.
        seed: The seed of the sample drawn, for the record.
        sample: How many tasks were drawn, for the record; None when all are asked.
        categories: What the sample was drawn from, for the record; empty for all.
        files: The files that tasks and environments come from, with digests, for the record; empty
            where the benchmark's name says which questions they are.
    """

    tools: ToolSource = "given"
    refine: RefineMode = "none"
    max_refinements: int = 5
    attempts: int = 1
    max_steps: int | None = None
    tool_choice: ToolChoice = "auto"
    instructions: str = ""
    examples: int = 0
    settings: ModelSettings = ModelSettings(temperature=0.0)  # noqa: RUF009 - immutable
    seed: int = 0
    sample: int | None = None
    categories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise UsageError(f"attempts is {self.attempts}; each task is tried at least once")

    def to_json(self) -> dict[str, Any]:
        """The settings as a JSON object, without what is as it is by default."""
        record: dict[str, Any] = {"tools": self.tools, "refine": self.refine}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name != "settings" and value != one.default:
                record[one.name] = list(value) if isinstance(value, tuple) else value
        if self.refine != "none":
            record["max_refinements"] = self.max_refinements
        generation = self.settings
        for name in ("temperature", "top_p", "max_tokens", "timeout_seconds"):
            if getattr(generation, name) is not None:
                record[name] = getattr(generation, name)
        if generation.seed is not None:
            record["generation_seed"] = generation.seed
        if generation.extra:
            record["extra"] = dict(generation.extra)
        return record


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationProgress:
    """The progress of a run.

    Attributes:
        done: Attempts that are finished, those of an earlier, interrupted start included.
        total: Attempts in all.
        resumed: How many of ``done`` an earlier start had finished.
        passed: How many of those finished now passed.
        failed: How many did not.
        task_id: The newest one; empty at the start.
        label: Its label.
        unfinished: How many attempts of this start a model error cut short.
        error: What went wrong with the model; empty when nothing did.
    """

    done: int
    total: int
    resumed: int = 0
    passed: int = 0
    failed: int = 0
    task_id: str = ""
    label: FailureLabel | None = None
    unfinished: int = 0
    error: str = ""


Listener: TypeAlias = Callable[[EvaluationProgress], None]


def ignore(progress: EvaluationProgress) -> None:
    """Discard progress."""


def attempt_seed(seed: int, task_id: str, number: int) -> int:
    """The seed of an attempt: equal for equal attempts at a task, whatever else is asked beside it.

    Tasks that ask the same in the same words do not share it, or their answers would be drawn
    alike, and counted as if they were not.

    Args:
        seed: The seed of the run.
        task_id: The task.
        number: Which attempt it is, from 0; that of the next is that of this one with a run's seed
            that is one more.

    Returns:
        Below 2**31, which every provider takes.
    """
    digest = hashlib.sha256(f"{seed + number}:{task_id}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def settings_text(settings: EvaluationSettings, *, benchmark: str, model: str, library: str) -> str:
    """Everything that a run's numbers depend on, as one line of canonical JSON.

    It is stored in the metadata of each episode of the run, so that an interrupted run is only gone
    on with under the same settings.

    Args:
        settings: How the questions are asked.
        benchmark: Name and release.
        model: The model's name.
        library: Digest of the library, since equal definitions make equal runs; empty for the
            benchmark's own catalogue.
    """
    record = {"benchmark": benchmark, "model": model, "library": library, **settings.to_json()}
    return json.dumps(record, sort_keys=True, separators=(",", ":"))
