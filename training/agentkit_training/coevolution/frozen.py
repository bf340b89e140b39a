"""``FrozenEngine``: the library learns and the policy does not; an ablation, and a dry run."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from agentkit_training.engines.base import Share, Source, StepReport
from agentkit_training.errors import CheckpointError
from agentkit_training.policy.policy import Policy

_STATE = "frozen.json"


@dataclass(kw_only=True)
class FrozenEngine:
    """An ``Engine`` that makes rollouts and leaves the weights as they are.

    Attributes:
        share: Which part of a step's tasks this process takes.
    """

    share: Share = field(default_factory=Share)
    _step: int = field(init=False, default=0)

    def train(self, policy: Policy, source: Source, *, steps: int) -> None:
        """Ask for the rollouts of each step, and tell that nothing was learned from them."""
        while self._step < steps:
            started = time.perf_counter()
            rollouts = source.rollouts(self._step, self.share)
            report = StepReport(
                step=self._step,
                loss=0.0,
                gradient_norm=0.0,
                learning_rate=0.0,
                rows=sum(len(one.sequences) for one in rollouts),
                read_rows=0,
                read_tokens=0,
                loss_tokens=0,
                rollout_seconds=time.perf_counter() - started,
                update_seconds=0.0,
            )
            self._step += 1
            source.finished(report)

    def save(self, folder: Path) -> None:
        """Write the number of steps into ``folder``."""
        (folder / _STATE).write_text(json.dumps({"step": self._step}), encoding="utf-8")

    def restore(self, folder: Path) -> None:
        """Go on from what ``save`` wrote.

        Raises:
            CheckpointError: It can not be read.
        """
        try:
            self._step = int(json.loads((folder / _STATE).read_text(encoding="utf-8"))["step"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{folder} holds no state of the frozen engine: {error}"
            ) from error
