"""One round: estimate difficulty, make self-refine samples, select, fine-tune, evaluate."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from agentkit.agent.types import REFINE_PROMPT
from agentkit.evaluation import Benchmark, EvaluationSettings, Task
from agentkit.evaluation.task import LeftOut
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall, UserMessage
from agentkit.models import render_calls
from agentkit_training.fine_tuning.examples import Examples, make_examples
from agentkit_training.fine_tuning.training import SftReport, SftStep, sft
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import put_weights, trainable_weights
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.runs import ignore
from agentkit_training.toolace.difficulty import (
    Difficulties,
    GoldAnswer,
    Solutions,
    TaskDifficulty,
    catalogued,
    counted,
    estimate_difficulty,
    gold_answers,
    nearest_calls,
)
from agentkit_training.toolace.records import (
    RoundRecord,
    SampleRecord,
    Selection,
    StopReason,
    ToolAceReport,
    ToolAceSettings,
    keep_round,
    kept_rounds,
    kept_weights,
    select,
    tuning_of,
)

if TYPE_CHECKING:
    import torch


SUFFIX = "#refine"
"""What the id of a sample has after that of its task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RefineSamples:
    """Self-refine samples.

    Attributes:
        benchmark: The samples as tasks.
        answers: Their gold answers, by the samples' ids.
        left_out: Tasks without a sample, and why.
    """

    benchmark: Benchmark
    answers: Mapping[str, GoldAnswer] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


def refine_samples(
    benchmark: Benchmark,
    answers: Mapping[str, GoldAnswer],
    first: Iterable[TaskDifficulty],
    *,
    prompt: str = REFINE_PROMPT,
) -> RefineSamples:
    """Make a self-refine sample of each task that has a gold answer and a first answer.

    Those whose first answer is the gold answer (A_1 = A) are among them, so that the policy learns
    when nothing is to be changed.

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
    return RefineSamples(
        benchmark=replace(benchmark, tasks=tuple(tasks)),
        answers=taught,
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
    """A run of rounds, and how far it is.

    Attributes:
        policy: What learns.
        train: The tasks it learns from.
        validation: The tasks that say how much it helped.
        settings: How.
        library: What the tools are called and described as.
        listen: Told of progress.
        folder: Where each round is kept; None keeps none.
        gold: The answers of the training tasks.
        base: The accuracy before the first.
        done: The whole rounds.
        best: Which of them led to the best accuracy; 0 for none.
        best_weights: The weights after it.
    """

    policy: Policy
    train: Benchmark
    validation: Benchmark
    settings: ToolAceSettings
    library: Library | None = None
    listen: Listener = ignore
    folder: Path | None = None
    gold: Solutions = field(init=False)
    base: float = field(init=False, default=0.0)
    done: tuple[RoundRecord, ...] = field(init=False, default=())
    best: int = field(init=False, default=0)
    best_weights: dict[str, torch.Tensor] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.gold = gold_answers(self.train, no_call=self.settings.no_call)

    async def begin(self) -> None:
        """Take up a kept run, or begin one."""
        policy = self.policy
        self.best_weights = trainable_weights(policy)
        kept = () if self.folder is None else kept_rounds(self.folder)
        self.base = kept[0].accuracy_before if kept else await self.accuracy(0)
        for record in kept:
            assert self.folder is not None  # where they are kept
            weights = kept_weights(self.folder, record.number)
            put_weights(policy, weights, source=f"round {record.number}")
            self._add(record)

    async def one(self) -> None:
        """Run the next round, and keep it."""
        number = len(self.done) + 1
        before = self.done[-1].accuracy_after if self.done else self.base
        folder = None if self.folder is None else tuning_of(self.folder, number)
        record = await self.run(number, before, folder)
        if self.folder is not None:
            keep_round(self.folder, record, trainable_weights(self.policy))
        self._add(record)
        self.listen(Progress(round=number, phase="done", record=record))

    def stopped(self) -> StopReason | None:
        """Why there is no further round; None when there is one."""
        last = self.done[-1] if self.done else None
        if last is not None and not last.examples:
            return "nothing_selected"
        if last is not None and last.gain < self.settings.least_gain:
            return "marginal_gain"
        return "all_rounds" if len(self.done) >= self.settings.rounds else None

    def report(self, stopped: StopReason) -> ToolAceReport:
        """The end: the policy gets the weights of the best round."""
        if self.best_weights is not None and self.best != len(self.done):
            put_weights(self.policy, self.best_weights, source="the best round")
        return ToolAceReport(
            base_accuracy=self.base, rounds=self.done, best=self.best, stopped=stopped
        )

    def _add(self, record: RoundRecord) -> None:
        self.done = (*self.done, record)
        reached = max([self.base, *(one.accuracy_after for one in self.done[:-1])])
        if record.examples and record.accuracy_after > reached:
            self.best = record.number
            self.best_weights = trainable_weights(self.policy)

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
        direct = await self._estimate(number, "difficulty", self.train, self.gold.answers)
        refined = RefineSamples(benchmark=self.train)
        estimates = direct
        if self.settings.refines:
            refined = refine_samples(self.train, self.gold.answers, direct.tasks)
            estimates += await self._estimate(number, "refine", refined.benchmark, refined.answers)
        wanted = self.settings.selection  # a random choice is another one in each round
        selection = select(estimates.tasks, replace(wanted, seed=wanted.seed + number))
        examples = await self._examples(selection, refined)
        trained, after = SftReport(), before
        if examples.rows:
            trained = await self._train(number, examples, folder)
            after = await self.accuracy(number)
        left_out = (*self.gold.left_out, *estimates.left_out, *refined.left_out, *examples.left_out)
        return RoundRecord(
            number=number,
            samples=_samples(estimates, selection),
            left_out=counted(left_out),
            examples=trained.examples,
            too_long=tuple(one.where for one in examples.left_out),
            accuracy_before=before,
            accuracy_after=after,
            losses=tuple(one.loss for one in trained.steps),
            steps=trained.resumed_at + len(trained.steps),
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


async def iterate(
    policy: Policy,
    train: Benchmark,
    validation: Benchmark,
    settings: ToolAceSettings = ToolAceSettings(),  # noqa: B008 - immutable
    *,
    library: Library | None = None,
    folder: Path | None = None,
    listen: Listener = ignore,
) -> ToolAceReport:
    """Train a policy in rounds: each one selects what the policy of that moment can learn from.

    The paper goes on until the improvement is marginal. We end a run whose last round brought less
    than ``settings.least_gain``, and leave the policy with the weights of the best round; the
    paper does not say what becomes of a round that made it worse.

    Args:
        policy: What learns: all its weights, or its LoRA adapters where only these are trainable.
        train: The tasks it learns from.
        validation: The tasks that say when to stop; they share no question and no function with
            ``train``, or the accuracy says nothing.
        settings: How.
        library: What the tools are called and described as; None for the benchmarks' own texts.
        folder: Where each round is kept; a run that is found there, which must be this one, goes on
            after its last whole round. None keeps none.
        listen: Told of progress.

    Raises:
        DivergedError: The loss is not a number.
        CheckpointError: A round can not be kept or read.
        PolicyError: No weight is trainable.
    """
    run = Rounds(
        policy=policy,
        train=train,
        validation=validation,
        settings=settings,
        library=library,
        listen=listen,
        folder=folder,
    )
    await run.begin()
    while (stopped := run.stopped()) is None:
        await run.one()
    return run.report(stopped)
