"""``evaluate``: ask every question of a benchmark, judge the answers, keep the episodes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agentkit.agent.types import Instructions
from agentkit.errors import ModelError, RunError, UsageError
from agentkit.evaluation.attempt import Attempt, AttemptResult, AttemptRunner, Staging
from agentkit.evaluation.expectations import Rubric
from agentkit.evaluation.settings import (
    EvaluationLabels,
    EvaluationProgress,
    EvaluationSettings,
    Listener,
    episodes_of_run,
    ignore,
    settings_text,
)
from agentkit.evaluation.task import Benchmark, Task
from agentkit.library import EpisodeStore, Library
from agentkit.messages import JsonObject
from agentkit.models.base import ChatModel
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retriever
from agentkit.tools.definition import is_instructions

MOST_FAILURES = 5
"""Attempts in a row that a model error cut short, after which the model is taken for broken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOutcome:
    """How a run ended.

    Attributes:
        run: Its name; the episodes carry it as the label ``run``.
        planned: Attempts in all.
        finished: Attempts that are finished, earlier starts included.
        resumed: How many of them earlier starts had finished.
        unfinished: Attempts that a passing model error cut short; another start tries them again.
        left: Attempts that were not started, since the time budget was spent.
        error: What the newest of these failed with; empty when there is none.
    """

    run: str
    planned: int
    finished: int
    resumed: int
    unfinished: int
    left: int = 0
    error: str = ""


async def evaluate(
    benchmark: Benchmark,
    *,
    model: ChatModel,
    store: EpisodeStore,
    run: str,
    library: Library | None = None,
    retriever: Retriever | None = None,
    judge: ChatModel | None = None,
    settings: EvaluationSettings = EvaluationSettings(),  # noqa: B008 - immutable
    concurrency: int = 4,
    seconds: float | None = None,
    listen: Listener = ignore,
) -> RunOutcome:
    """Ask every task of a benchmark.

    Each attempt becomes one episode for each thing the user says, with its verdict and diagnosis;
    ``agentkit.evaluation.results`` makes the report from them. The episodes of an attempt are kept
    together when it ends, so an interrupted run loses at most what was under way; started again
    under the same name it resumes where it stopped.

    Args:
        benchmark: The questions.
        model: Answers.
        store: Keeps the episodes.
        run: Name of the run.
        library: Tools and their texts; those that it lacks are the benchmark's own. None for the
            benchmark's own catalogue.
        retriever: Finds tools with ``settings.tools == "retrieved"``; None for the default one.
        judge: Judges by rubrics, where tasks have them.
        settings: How to ask.
        concurrency: Attempts under way at the same time.
        seconds: Time budget: when it is spent no further attempt begins. Those under way are
            finished; the rest is left for another start. None for no budget.
        listen: Called with progress.

    Raises:
        UsageError: The run was started with other settings, there is nothing to ask, a task names a
            tool that neither the library nor the benchmark has, or one has a rubric and there is no
            judge.
        RunError: The model failed ``MOST_FAILURES`` times in a row; what is finished is kept.
    """
    if not benchmark.tasks:
        raise UsageError(f"{benchmark.name} has no tasks to ask")
    _check_judge(benchmark, judge)
    text = settings_text(
        settings,
        benchmark=benchmark.name,
        model=model.name,
        library="" if library is None else library.digest[:16],
    )
    finished, asked_under = await asyncio.to_thread(_earlier_start, store, run)
    _check_settings(run, asked_under, text)
    retrieves = settings.tools == "retrieved"
    held = Library() if library is None else library
    if is_instructions(settings.instructions):
        Instructions(name=settings.instructions).in_library(held)  # or says that it has none
    runner = AttemptRunner(
        benchmark=benchmark,
        staging=Staging.of(benchmark, held, retrieves=retrieves),
        model=model,
        judge=judge,
        retriever=(retriever or default_retriever()) if retrieves else None,
        settings=settings,
        labels=EvaluationLabels(run=run, benchmark=benchmark.name, settings=text),
    )
    planned = [
        Attempt(task=task, number=number)
        for number in range(settings.attempts)
        for task in benchmark.tasks
    ]
    todo = [one for one in planned if (one.task.task_id, one.number) not in finished]
    resumed = len(planned) - len(todo)
    running = _Running(
        runner=runner,
        ends_at=None if seconds is None else time.monotonic() + seconds,
        store=store,
        listen=listen,
        progress=EvaluationProgress(done=resumed, total=len(planned), resumed=resumed),
    )
    await running.all(todo, concurrency)
    open_attempts = len(planned) - running.progress.done
    return RunOutcome(
        run=run,
        planned=len(planned),
        finished=running.progress.done,
        resumed=resumed,
        unfinished=open_attempts - running.left,
        left=running.left,
        error=running.error,
    )


def _earlier_start(store: EpisodeStore, run: str) -> tuple[set[tuple[str, int]], str]:
    """What an earlier start left: task and number of finished attempts, and its settings."""
    finished: set[tuple[str, int]] = set()
    settings = ""
    for episode in episodes_of_run(store, run):
        labels = EvaluationLabels.of(episode)
        if labels is not None:
            settings = labels.settings or settings
            if labels.ends:
                finished.add((labels.task, labels.attempt))
    return finished, settings


def _check_settings(run: str, earlier: str, settings: str) -> None:
    """Make sure that a run is resumed with the settings it was started with.

    Raises:
        UsageError: It was started with other settings; the message names them.
    """
    if not earlier or earlier == settings:
        return
    old, new = json.loads(earlier), json.loads(settings)
    changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    differences = "; ".join(
        f"{key} was {_setting_text(old, key)}, is {_setting_text(new, key)}" for key in changed
    )
    raise UsageError(
        f"the run {run!r} was started with other settings ({differences}); repeat them to go on "
        "with it, or give the new run another name"
    )


def _setting_text(settings: JsonObject, key: str) -> str:
    return repr(settings[key]) if key in settings else "not set"


def _check_judge(benchmark: Benchmark, judge: ChatModel | None) -> None:
    """Checked before anything is asked: answers that nobody can judge waste money."""
    rubrics = [
        task.task_id
        for task in benchmark.tasks
        if any(isinstance(one, Rubric) for turn in task.turns for one in turn.expects)
    ]
    if rubrics and judge is None:
        first = ", ".join(map(repr, rubrics[:3])) + (", ..." if len(rubrics) > 3 else "")
        raise UsageError(
            f"{len(rubrics)} of {len(benchmark.tasks)} tasks are judged by a rubric ({first}), and "
            "there is no model to judge them: give one as judge (--judge NAME), another one than "
            "answers if you can, or leave these tasks out"
        )


@dataclass(kw_only=True)
class _Running:
    """The state of one start of a run."""

    runner: AttemptRunner
    store: EpisodeStore
    listen: Listener
    progress: EvaluationProgress
    ends_at: float | None = None
    left: int = field(init=False, default=0)
    error: str = field(init=False, default="")
    _failures: int = field(init=False, default=0)

    async def all(self, attempts: Sequence[Attempt], concurrency: int) -> None:
        """Make the attempts, ``concurrency`` of them at a time."""
        self.listen(self.progress)
        waiting = iter(attempts)

        async def work() -> None:
            for attempt in waiting:  # workers share one iterator: each attempt is taken once
                if self.ends_at is not None and time.monotonic() >= self.ends_at:
                    self.left += 1
                else:
                    await self._one(attempt)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(max(1, min(concurrency, len(attempts)))):
                    group.create_task(work())
        except ExceptionGroup as errors:  # the first one tells what stopped the run
            raise errors.exceptions[0] from errors.exceptions[0].__cause__

    async def _one(self, attempt: Attempt) -> None:
        result = await self.runner.run(attempt)
        await asyncio.to_thread(self._keep, result)
        self._report_progress(attempt.task, result)
        if result.error is None or result.is_finished:
            self._failures = 0
            return
        self._failures += 1
        self.error = str(result.error)
        if self._failures >= MOST_FAILURES:
            raise _broken(result.error, result, self._failures)

    def _keep(self, result: AttemptResult) -> None:
        for episode in result.episodes:
            self.store.append(episode)

    def _report_progress(self, task: Task, result: AttemptResult) -> None:
        now = self.progress
        last = result.episodes[-1] if result.episodes else None
        counts = result.is_finished
        self.progress = replace(
            now,
            done=now.done + counts,
            passed=now.passed + (counts and result.passed),
            failed=now.failed + (counts and not result.passed),
            task_id=task.task_id,
            unfinished=now.unfinished + (not counts),
            label=last.diagnosis.label if last is not None and last.diagnosis else None,
            error="" if result.error is None else str(result.error),
        )
        self.listen(self.progress)


def _broken(error: ModelError, result: AttemptResult, times: int) -> RunError:
    return RunError(
        f"the model failed {times} times in a row, last with: {error}; "
        "what is finished is kept, and the same command resumes from there",
        episode=result.episodes[-1] if result.episodes else None,
    )
