"""``coevolve``: a run from its beginning or its newest checkpoint to its last step."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from agentkit_training.coevolution.checkpoint import (
    Checkpointed,
    load_checkpoint,
    newest_checkpoint,
)
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.engines.base import Engine, Share, Source, StepReport
from agentkit_training.errors import CheckpointError
from agentkit_training.policy.policy import Policy


def coevolve(
    policy: Policy,
    source: Coevolution,
    engine: Engine,
    *,
    folder: Path | None = None,
    every: int = 1,
    keep: int = 2,
) -> Coevolution:
    """Train a policy while its library learns (CoCoDA's stage 3; ToolDNA, Algorithm 1).

    Where ``folder`` holds checkpoints the run goes on from the newest one. What was under way when
    a run ended is done again: at most the steps since that checkpoint.

    Args:
        policy: What learns.
        source: The library, and what is tried.
        engine: How the policy learns.
        folder: Where checkpoints go; None writes none.
        every: After how many steps one is written.
        keep: How many are kept.

    Returns:
        The source, with records and library.

    Raises:
        CheckpointError: The checkpoint there belongs to another run, or one can not be written.
        DivergedError: The loss is not a number; the last checkpoint is from before.
    """
    if folder is None:
        engine.train(policy, source, steps=source.steps)
        return source
    newest = newest_checkpoint(folder)
    name = source.ranks.broadcast(None if newest is None else newest.name)  # one for all processes
    if name is not None:
        load_checkpoint(folder / name, policy=policy, source=source, engine=engine)
    kept = Checkpointed(
        source=source, policy=policy, engine=engine, folder=folder, every=every, keep=keep
    )
    engine.train(policy, kept, steps=source.steps)
    return source


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
