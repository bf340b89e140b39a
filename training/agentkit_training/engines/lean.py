"""``LeanEngine``: rollouts, packed updates, next step; for one process and one device."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from agentkit.errors import UsageError
from agentkit_training.engines.adam import AdamEngine
from agentkit_training.engines.base import (
    COUNTS,
    Share,
    Source,
    StepReport,
    drawing,
    set_rate,
)
from agentkit_training.engines.objective import Limits
from agentkit_training.engines.packing import TrainingRow, mini_batches, training_rows
from agentkit_training.engines.update import update
from agentkit_training.errors import check_least
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.reference import recomputing
from agentkit_training.rollout.samples import Rollout

if TYPE_CHECKING:
    import torch


@dataclass(kw_only=True)
class LeanEngine(AdamEngine):
    """Trains in this process. ``AdamEngine`` has the other attributes.

    With more than one update a step the objective's ``old_logprobs`` must be ``sampled``.

    Attributes:
        max_logits: Most numbers of logits of an update at once, see ``Limits``.
        iterations: How often a step's rollouts are gone through (mu in GRPO).
        mini_batches: Updates in each iteration; groups stay whole.
    """

    FILE = "lean.pt"

    max_logits: int = 1 << 24
    iterations: int = 1
    mini_batches: int = 1

    def __post_init__(self) -> None:
        check_least(self, "iterations", "mini_batches")
        if self.iterations * self.mini_batches > 1 and self.objective.old_logprobs != "sampled":
            raise UsageError(
                f"with {self.iterations * self.mini_batches} updates a step the ratio must be "
                "taken against the weights that wrote the rollouts, or nothing bounds it; give "
                'Objective(old_logprobs="sampled")'
            )

    def train(self, policy: Policy, source: Source, *, steps: int) -> None:
        """Take steps until ``steps`` have been taken; see ``Engine.train``.

        Raises:
            CheckpointError: A restored state is damaged, or of another model.
        """
        adam = self._optimiser_of(policy)
        while self.step < steps:
            rate = set_rate(adam, self.optimizer, step=self.step, steps=steps)
            started = time.perf_counter()
            rollouts = source.rollouts(self.step, Share())
            rolled = time.perf_counter()
            done = self._updates(policy, rollouts, adam)
            report = replace(
                _report(done),
                learning_rate=rate,
                rollout_seconds=rolled - started,
                update_seconds=time.perf_counter() - rolled,
            )
            self.step += 1
            source.finished(report)

    def _updates(
        self, policy: Policy, rollouts: Sequence[Rollout], adam: torch.optim.Optimizer
    ) -> list[StepReport]:
        """All updates of a step."""
        rows = training_rows(rollouts, scaled=self.scaled)
        with (
            recomputing(policy, wanted=self.gradient_checkpointing),
            drawing(policy.device, self.seed, self.step),
        ):
            return [
                update(
                    policy,
                    batch,
                    adam,
                    self.objective,
                    reference=self.reference,
                    max_gradient_norm=self.optimizer.max_gradient_norm,
                    step=self.step,
                    limits=Limits(tokens=self.max_tokens, logits=self.max_logits),
                )
                for number in range(self.iterations)
                for batch in self._batches(rows, number)
            ]

    def _batches(self, rows: list[TrainingRow], iteration: int) -> list[list[TrainingRow]]:
        if self.mini_batches == 1:
            return [rows]
        return mini_batches(rows, count=self.mini_batches, seed=(self.step, iteration))


_MEANS = ("loss", "gradient_norm", "entropy", "divergence", "clip_share")


def _report(done: Sequence[StepReport]) -> StepReport:
    """The updates of a step as one report: means of what is a mean, sums of what is a number.

    The ratios of the first update alone say how alike rollouts were written and read.
    """
    means: dict[str, Any] = {n: fmean(getattr(one, n) for one in done) for n in _MEANS}
    sums: dict[str, Any] = {n: sum(getattr(one, n) for one in done) for n in COUNTS}
    return replace(done[0], **means, **sums)
