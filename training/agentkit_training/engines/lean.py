"""``LeanEngine``: rollouts, one packed update, next step; for one process and one device."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentkit_training.engines.base import OptimizerSettings, Share, Source, StepReport
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.rows import training_rows
from agentkit_training.engines.schedule import rate_factor
from agentkit_training.engines.update import update
from agentkit_training.errors import CheckpointError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch

_STATE = "lean.pt"


@dataclass(kw_only=True)
class LeanEngine:
    """Trains in this process, one update for each step's rollouts.

    Attributes:
        optimizer: How the weights follow the gradient.
        objective: What an update makes larger.
        scaled: Whether advantages are divided by the group's deviation.
        reference: What the KL divergence is taken to; None leaves it out.
        max_tokens: Longest input of an update that is read at once.
    """

    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    objective: Objective = field(default_factory=Objective)
    scaled: bool = True
    reference: Policy | None = None
    max_tokens: int = 4096
    _step: int = field(init=False, default=0)
    _restored: Path | None = field(init=False, default=None)
    _adam: torch.optim.Optimizer | None = field(init=False, default=None)

    def train(self, policy: Policy, source: Source, *, steps: int) -> None:
        """Take steps until ``steps`` have been taken; see ``Engine.train``."""
        adam = self._prepared(policy)
        while self._step < steps:
            factor = rate_factor(self.optimizer, step=self._step, steps=steps)
            for group in adam.param_groups:
                group["lr"] = self.optimizer.learning_rate * factor
            started = time.perf_counter()
            rollouts = source.rollouts(self._step, Share())
            rolled = time.perf_counter()
            done = update(
                policy,
                training_rows(rollouts, scaled=self.scaled),
                adam,
                self.objective,
                reference=self.reference,
                max_gradient_norm=self.optimizer.max_gradient_norm,
                step=self._step,
                max_tokens=self.max_tokens,
            )
            report = StepReport(
                step=self._step,
                loss=done.loss,
                gradient_norm=done.gradient_norm,
                learning_rate=self.optimizer.learning_rate * factor,
                rows=done.rows,
                read_rows=done.read_rows,
                read_tokens=done.read_tokens,
                loss_tokens=done.loss_tokens,
                rollout_seconds=rolled - started,
                update_seconds=time.perf_counter() - rolled,
            )
            self._step += 1
            source.finished(report)

    def save(self, folder: Path) -> None:
        """Write step and optimiser state into ``folder``."""
        import torch

        state = None if self._adam is None else self._adam.state_dict()
        torch.save({"step": self._step, "adam": state}, folder / _STATE)

    def restore(self, folder: Path) -> None:
        """Go on from what ``save`` wrote; the optimiser takes it up when training begins.

        Raises:
            CheckpointError: There is no such state in ``folder``.
        """
        if not (folder / _STATE).is_file():
            raise CheckpointError(f"{folder} holds no state of the lean engine ({_STATE})")
        self._restored = folder / _STATE

    def _prepared(self, policy: Policy) -> torch.optim.Optimizer:
        import torch

        adam = torch.optim.AdamW(
            policy.trainable,
            lr=self.optimizer.learning_rate,
            betas=self.optimizer.betas,
            weight_decay=self.optimizer.weight_decay,
        )
        if self._restored is not None:
            state = torch.load(self._restored, weights_only=True)
            self._step = state["step"]
            if state["adam"] is not None:
                adam.load_state_dict(state["adam"])
            self._restored = None
        self._adam = adam
        return adam
