"""One round: estimate difficulty, make self-refine samples, select, fine-tune, evaluate."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit.models import render_calls
from agentkit_training.difficulty import Difficulties, estimate_difficulty
from agentkit_training.fine_tuning.examples import Examples, make_examples
from agentkit_training.fine_tuning.settings import SftReport, SftStep
from agentkit_training.fine_tuning.solutions import Solutions
from agentkit_training.fine_tuning.training import sft
from agentkit_training.gold import GoldAnswer, counted
from agentkit_training.policy.policy import Policy
from agentkit_training.refine_samples import RefineSamples, refine_samples
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.selection import Selection, select
from agentkit_training.toolace.records import RoundRecord, SampleRecord
from agentkit_training.toolace.settings import ToolAceSettings

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
