"""``HeldOut``: held-out tasks, done with two libraries that differ in one definition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.evaluation import evaluate
from agentkit.evaluation.expectations import ExactCalls
from agentkit.evaluation.results.report import TaskResult
from agentkit.evaluation.results.summary import summarise
from agentkit.evaluation.settings import (
    EvaluationSettings,
    Listener,
    episodes_of_run,
    ignore,
    settings_text,
)
from agentkit.evaluation.task import Benchmark, Task
from agentkit.evolution.gates import PairedScore
from agentkit.evolution.proposers.optimizer import GepaOptimizer, Score
from agentkit.evolution.repository import with_overrides
from agentkit.library.library import Library
from agentkit.library.store import EpisodeStore
from agentkit.messages import JsonObject
from agentkit.models.base import ChatModel
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition, is_instructions

_LEAST_FRESH = 3  # a third of all tasks

NAME = "held-out"
"""Prefix of the names of runs that compare definitions."""


def is_held_out_answer(episode: Episode) -> bool:
    """Whether an episode answers a held-out task, so that nobody may learn from it."""
    return str(episode.metadata.get("run", "")).startswith(f"{NAME}:")


def deciding_tasks(tasks: Iterable[Task], *, seen: Collection[str]) -> frozenset[str]:
    """Ids of the tasks that decide whether a change is a gain; from the others may be learned.

    These are the tasks that were not asked yet. Where most were asked, every second one decides,
    in an order that depends on the tools that it offers and on its id alone, so that later rounds
    keep to the same halves.

    Args:
        tasks: All of them.
        seen: Ids of tasks that there are episodes of.

    Example:
        >>> def task(name):
        ...     return Task(task_id=name, category="", request="Hi", offered=("a",))
        >>> tasks = [task(name) for name in "0123"]
        >>> sorted(deciding_tasks(tasks, seen=["0", "1"]))
        ['2', '3']
        >>> len(deciding_tasks(tasks, seen=["0", "1", "2", "3"]))
        2
    """
    every = tuple(tasks)
    fresh = {one.task_id for one in every if one.task_id not in seen}
    if _LEAST_FRESH * len(fresh) >= len(every):
        return frozenset(fresh)
    ordered = sorted(every, key=lambda one: (one.offered, digest(one.task_id)))
    return frozenset(one.task_id for one in ordered[1::2])


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """Asks an agent the tasks that concern a tool, once with each of two libraries.

    An agent's instructions concern every task, and are what the agent is then given.

    Answers are kept as the episodes of two runs, named after the libraries' content and after how
    it is asked. So a library whose answers are known already is not asked again, and an interrupted
    comparison resumes where it stopped.

    Attributes:
        benchmark: The tasks.
        model: Answers.
        store: Keeps the answers.
        learned_from: Ids of tasks that proposals were made from; they are left out.
        settings: How to ask.
        judge: Judges by rubrics, where tasks have them.
        concurrency: Attempts under way at the same time.
        name: Prefix of the names of the runs.
        begin: Called with a description of the next step; returns its progress callback.
    """

    benchmark: Benchmark
    model: ChatModel
    store: EpisodeStore
    learned_from: Collection[str] = ()
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)
    judge: ChatModel | None = None
    concurrency: int = 4
    name: str = NAME
    begin: Callable[[str], Listener] = field(default=lambda _: ignore)

    async def __call__(
        self, tool_name: str, control: Library, candidate: Library
    ) -> Sequence[PairedScore]:
        """The score of each task with both; empty where no held-out task concerns the tool.

        Raises:
            RunError: The model failed for good; what is finished is kept.
            UsageError: A task cannot be asked, see ``evaluate``.
        """
        tasks = self.tasks_for(tool_name)
        if not tasks:
            return ()
        title = f"Held-out tasks of {tool_name}"
        before = await self._scores(tool_name, tasks, control, self.begin(f"{title}, as it is"))
        after = await self._scores(tool_name, tasks, candidate, self.begin(f"{title}, changed"))
        return [
            PairedScore(task=task, control=before[task].score, candidate=after[task].score)
            for task in before
            if task in after
        ]

    def optimizer(
        self, model: ChatModel, tool_name: str, library: Library, *, attempts: int
    ) -> GepaOptimizer[Task]:
        """GEPA over the texts of a tool, with the tasks that do not decide as its cases.

        Args:
            model: Reflects and writes the texts.
            tool_name: The tool.
            library: The tools as they are.
            attempts: Tasks that may be asked, in all.

        Raises:
            UsageError: Every task that concerns the tool decides.
        """
        decides = {task.task_id for task in self.benchmark.tasks} - {*self.learned_from}
        cases = replace(self, learned_from=decides).tasks_for(tool_name)
        if not cases:
            raise UsageError(
                f"every task that offers {tool_name!r} decides, so that GEPA has none to learn "
                "from; ask some first, with 'agentkit eval'"
            )

        async def attempted(candidate: ToolDefinition, cases: Sequence[Task]) -> list[Score]:
            changed = with_overrides(library, {tool_name: candidate})
            results = await self._scores(tool_name, tuple(cases), changed, ignore)
            run = self._run_name(tool_name, changed)
            said = {
                str(one.metadata.get("task")): "; ".join(
                    item.message for item in one.verdict.evidence
                )
                for one in episodes_of_run(self.store, run)
                if one.verdict is not None
            }
            return [
                Score(
                    value=results[one.task_id].score if one.task_id in results else 0.0,
                    feedback=said.get(one.task_id, ""),
                )
                for one in cases
            ]

        return GepaOptimizer(model, attempted, cases, max_evaluations=attempts)

    def tasks_for(self, tool_name: str) -> tuple[Task, ...]:
        """The held-out tasks that offer a tool; all of them where tools are retrieved."""
        offers_all = self.settings.tools == "retrieved" or is_instructions(tool_name)
        return tuple(
            task
            for task in self.benchmark.tasks
            if task.task_id not in self.learned_from
            and (offers_all or any(tool_name in turn.offers for turn in task.turns))
        )

    def gold_calls(self, tool_name: str) -> tuple[tuple[str, JsonObject], ...]:
        """The exact calls of a tool that its held-out tasks expect, with the tasks' ids."""
        return tuple(
            (task.task_id, call.arguments)
            for task in self.tasks_for(tool_name)
            for turn in task.turns
            for one in turn.expects
            if isinstance(one, ExactCalls)
            for call in one.calls
            if call.name == tool_name
        )

    async def _scores(
        self, tool_name: str, tasks: tuple[Task, ...], library: Library, listen: Listener
    ) -> dict[str, TaskResult]:
        run = self._run_name(tool_name, library)
        await evaluate(
            replace(self.benchmark, tasks=tasks),
            model=self.model,
            store=self.store,
            run=run,
            library=library.at_version(0),  # what counts is its content
            judge=self.judge,
            settings=self._settings_for(tool_name),
            concurrency=self.concurrency,
            listen=listen,
        )
        task_ids = {task.task_id for task in tasks}  # an earlier round may have held out others
        report = summarise(episodes_of_run(self.store, run))
        return {result.task: result for result in report.results if result.task in task_ids}

    def _settings_for(self, tool_name: str) -> EvaluationSettings:
        if not is_instructions(tool_name):
            return self.settings
        return replace(self.settings, instructions=tool_name)

    def _run_name(self, tool_name: str, library: Library) -> str:
        """The same for the same library, asked in the same way."""
        text = settings_text(
            self._settings_for(tool_name),
            benchmark=self.benchmark.name,
            model=self.model.name,
            library=library.digest,
        )
        return f"{self.name}:{tool_name}:{digest(text)[:16]}"
