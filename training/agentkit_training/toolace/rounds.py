"""One round: estimate difficulty, make self-refine samples, select, fine-tune, evaluate."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from agentkit.agent.refine import REFINE_PROMPT
from agentkit.evaluation import Benchmark, EvaluationSettings, Task
from agentkit.evaluation.task import LeftOut
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall, UserMessage
from agentkit.models import render_calls
from agentkit_training.fine_tuning.examples import Examples, make_examples
from agentkit_training.fine_tuning.settings import SftReport, SftStep
from agentkit_training.fine_tuning.solutions import Solutions
from agentkit_training.fine_tuning.training import sft
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.toolace.difficulty import (
    Difficulties,
    GoldAnswer,
    TaskDifficulty,
    catalogued,
    counted,
    estimate_difficulty,
    nearest_calls,
)
from agentkit_training.toolace.records import RoundRecord, SampleRecord
from agentkit_training.toolace.settings import Selection, ToolAceSettings, select

SUFFIX = "#refine"
"""What the id of a sample has after that of its task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RefineSamples:
    """Self-refine samples.

    Attributes:
        benchmark: The samples as tasks.
        answers: Their gold answers, by the samples' ids.
        unchanged: Ids of the samples whose first answer is the gold answer (A_1 = A); they are
            kept, so that the policy learns when nothing is to be changed.
        left_out: Tasks without a sample, and why.
    """

    benchmark: Benchmark
    answers: Mapping[str, GoldAnswer] = field(default_factory=dict)
    unchanged: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def refine_samples(
    benchmark: Benchmark,
    answers: Mapping[str, GoldAnswer],
    first: Iterable[TaskDifficulty],
    *,
    prompt: str = REFINE_PROMPT,
) -> RefineSamples:
    """Make a self-refine sample of each task that has a gold answer and a first answer.

    Args:
        benchmark: The tasks.
        answers: Their gold answers.
        first: What the policy answered: of each task the first attempt is taken. Attempts at
            temperature 0 give the answers that the runtime will ask to refine.
        prompt: The request to refine; that of the runtime.
    """
    known = {one.name: one for one in benchmark.definitions}
    tried = {one.task_id: one for one in first}
    tasks: list[Task] = []
    taught: dict[str, GoldAnswer] = {}
    unchanged: list[str] = []
    left_out: list[LeftOut] = []
    for task in benchmark.tasks:
        attempt = tried.get(task.task_id)
        if attempt is None or task.task_id not in answers:
            continue
        calls = attempt.attempts[0]
        if not calls:
            reason = "the first answer has no calls to refine"
            left_out.append(LeftOut(where=task.task_id, reason=reason))
            continue
        sample = refine_task(task, calls, prompt=prompt)
        gold = answers[task.task_id]
        nearest = nearest_calls(gold, catalogued(calls, attempt.names), known)
        tasks.append(sample)
        taught[sample.task_id] = replace(gold, task_id=sample.task_id, calls=nearest)
        unchanged += [sample.task_id] * (attempt.shortfalls[0] == 0)
    return RefineSamples(
        benchmark=replace(benchmark, tasks=tuple(tasks)),
        answers=taught,
        unchanged=tuple(unchanged),
        left_out=tuple(left_out),
    )


def refine_task(task: Task, first: Sequence[ToolCall], *, prompt: str = REFINE_PROMPT) -> Task:
    """The task of refining a first answer; what is right stays what it was.

    The first answer is shown as the runtime shows it: as text, since its calls were never run.

    Args:
        task: The task.
        first: The calls of the first answer, as they were written.
        prompt: The request to refine.
    """
    said = (UserMessage(text=task.request), AssistantMessage(text=render_calls(first)))
    return replace(
        task,
        task_id=f"{task.task_id}{SUFFIX}",
        history=(*task.history, *said),
        request=prompt,
    )


Phase: TypeAlias = Literal["evaluate", "difficulty", "refine", "sft", "done"]

_SEEDS_A_ROUND = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Where a run is.

    Attributes:
        round: Its number, from 1; 0 before the first.
        phase: What is done now; ``done`` when the round is over.
        step: The optimiser step that was just taken, if one was.
        record: What the round did, when it is over.
    """

    round: int
    phase: Phase
    step: SftStep | None = None
    record: RoundRecord | None = None


Listener: TypeAlias = Callable[[Progress], None]


@dataclass(kw_only=True)
class Rounds:
    """What all rounds of a run have in common.

    Attributes:
        policy: What learns.
        train: The tasks it learns from.
        validation: The tasks that say how much it helped.
        settings: How.
        library: What the tools are called and described as.
        gold: The answers of the training tasks.
        listen: Told of progress.
    """

    policy: Policy
    train: Benchmark
    validation: Benchmark
    settings: ToolAceSettings
    library: Library | None
    gold: Solutions
    listen: Listener

    async def accuracy(self, number: int) -> float:
        """The share of the validation tasks that the policy solves by greedy search."""
        self.listen(Progress(round=number, phase="evaluate"))
        rollouts = await collect(
            self._model(),
            self.validation,
            library=self.library,
            attempts=1,
            temperature=0,
            settings=self.settings.evaluation,
        )
        return sum(one.passed for one in rollouts) / len(rollouts)

    async def run(self, number: int, before: float, folder: Path | None) -> RoundRecord:
        """One round; the policy's weights change.

        Args:
            number: Of the round, from 1.
            before: The accuracy before it.
            folder: Where checkpoints of its fine-tuning go; None keeps none.
        """
        clock = _Clock()
        with clock.measuring("difficulty"):
            direct = await self._estimate(number, "difficulty", self.train, self.gold.answers)
        refined = RefineSamples(benchmark=self.train)
        estimates = direct
        if self.settings.refines:
            with clock.measuring("refine"):
                refined = await self._refined(number, direct)
                estimates += await self._estimate(
                    number, "refine", refined.benchmark, refined.answers
                )
        selection = select(estimates.tasks, self.settings.selection)
        examples = await self._examples(selection, refined)
        trained, after = SftReport(), before
        if examples.rows:
            with clock.measuring("sft"):
                trained = await self._train(number, examples, folder)
            with clock.measuring("evaluate"):
                after = await self.accuracy(number)
        left_out = (*self.gold.left_out, *estimates.left_out, *refined.left_out, *examples.left_out)
        return RoundRecord(
            number=number,
            samples=_samples(estimates, selection),
            histogram=estimates.histogram(),
            left_out=counted(left_out),
            unchanged=refined.unchanged,
            examples=trained.examples,
            too_long=tuple(one.where for one in examples.left_out),
            accuracy_before=before,
            accuracy_after=after,
            losses=tuple(one.loss for one in trained.steps),
            steps=trained.resumed_at + len(trained.steps),
            seconds=clock.seconds,
        )

    async def _estimate(
        self,
        number: int,
        phase: Phase,
        benchmark: Benchmark,
        answers: Mapping[str, GoldAnswer],
    ) -> Difficulties:
        self.listen(Progress(round=number, phase=phase))
        return await estimate_difficulty(
            self._model(),
            benchmark,
            answers,
            library=self.library,
            attempts=self.settings.attempts,
            temperature=self.settings.temperature,
            seed=self.settings.seed + number * _SEEDS_A_ROUND,
            settings=self._asking,
        )

    async def _refined(self, number: int, direct: Difficulties) -> RefineSamples:
        first = direct
        if self.settings.first_answer == "greedy":
            first = await estimate_difficulty(
                self._model(),
                self.train,
                self.gold.answers,
                library=self.library,
                attempts=1,
                temperature=0,
                seed=number,
                settings=self._asking,
            )
        return refine_samples(self.train, self.gold.answers, first.tasks)

    async def _examples(self, selection: Selection, refined: RefineSamples) -> Examples:
        taken = frozenset(selection.taken)
        found = Examples()
        for benchmark, answers in (
            (self.train, self.gold.answers),
            (refined.benchmark, refined.answers),
        ):
            found += await make_examples(
                self.policy,
                benchmark,
                {name: one for name, one in answers.items() if name in taken},
                prompting=self.settings.prompting,
                library=self.library,
                settings=self._asking,
                max_tokens=min(self.settings.sft.max_tokens, self.policy.context_tokens),
            )
        return found

    async def _train(self, number: int, examples: Examples, folder: Path | None) -> SftReport:
        self.listen(Progress(round=number, phase="sft"))

        def told(step: SftStep) -> None:
            self.listen(Progress(round=number, phase="sft", step=step))

        settings = replace(self.settings.sft, seed=self.settings.sft.seed + number)
        report = await asyncio.to_thread(
            sft, self.policy, examples.rows, settings, folder=folder, listen=told
        )
        if folder is not None:
            shutil.rmtree(folder)  # the round keeps the weights; the optimiser begins anew
        return report

    @property
    def _asking(self) -> EvaluationSettings:
        """As in evaluation, with the same instructions, but one answer at a time."""
        return replace(self.settings.evaluation, refine="none")

    def _model(self) -> PolicyModel:
        return self.settings.prompting.model(
            self.policy,
            max_tokens=self.settings.answer_tokens,
            batch_size=self.settings.batch_size,
        )


def _samples(estimates: Difficulties, selection: Selection) -> tuple[SampleRecord, ...]:
    return tuple(
        SampleRecord(
            sample_id=one.task_id,
            difficulty=one.difficulty,
            attempts=tuple(render_calls(calls) for calls in one.attempts),
            excluded=selection.excluded.get(one.task_id),
        )
        for one in estimates.tasks
    )


class _Clock:
    """The wall time of each phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measuring(self, phase: Phase) -> Iterator[None]:
        """Add the time inside to that of ``phase``."""
        started = time.perf_counter()
        yield
        passed = time.perf_counter() - started
        self.seconds[phase] = round(self.seconds.get(phase, 0.0) + passed, 3)
