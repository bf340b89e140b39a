"""``own_device``: which accelerator a process of several takes."""

from __future__ import annotations

import os

from agentkit.errors import UsageError
from agentkit_training.distributed.ranks import Ranks


def own_device(device: str, ranks: Ranks) -> str:
    """The device of this process.

    Args:
        device: As the configuration has it: ``cuda`` is one GPU for each process of a machine.
        ranks: The processes.

    Raises:
        UsageError: One GPU is named for several processes.

    Example:
        >>> from agentkit_training.distributed.ranks import Alone
        >>> own_device("cuda:1", Alone())
        'cuda:1'
    """
    if ranks.world == 1 or device == "cpu":
        return device
    kind, _, number = device.partition(":")
    if number:
        raise UsageError(
            f"policy.device is {device} and {ranks.world} processes were started, which would all "
            f"take it; set policy.device: {kind}, and each takes one of its own"
        )
    return f"{kind}:{os.environ.get('LOCAL_RANK', '0')}"
