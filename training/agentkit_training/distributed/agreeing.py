"""``check_weights``: whether all processes hold the same policy."""

from __future__ import annotations

import hashlib

from agentkit_training.distributed.ranks import Ranks
from agentkit_training.errors import TrainingError
from agentkit_training.policy.policy import Policy


def check_weights(policy: Policy, ranks: Ranks) -> None:
    """Compare what was trained, bit by bit.

    Each process changed its own copy by the gradient of all; where copies differ, each went its own
    way, and what rank 0 would hand over is a part of the run.

    Raises:
        TrainingError: They differ; raised in all processes.
    """
    if ranks.world == 1:
        return
    told = ranks.broadcast(ranks.gather(weights_digest(policy)))
    if len(set(told)) > 1:
        by_rank = ", ".join(f"rank {rank} {one[:12]}" for rank, one in enumerate(told))
        raise TrainingError(
            f"the processes came to different weights: {by_rank}. Nothing is handed over; go on "
            "from the last checkpoint, on machines of one kind"
        )


def weights_digest(policy: Policy) -> str:
    """SHA-256 of the weights that are trained, in hexadecimal."""
    import torch

    found = hashlib.sha256()
    for one in policy.trainable:
        found.update(one.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
