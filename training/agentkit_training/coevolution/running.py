"""``coevolve``: a run from its beginning or its newest checkpoint to its last step."""

from __future__ import annotations

from pathlib import Path

from agentkit_training.coevolution.checkpoint import (
    Checkpointed,
    load_checkpoint,
    newest_checkpoint,
)
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.engines.base import Engine
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
