"""Sharded training: weights, gradients and the optimiser's state lie in shares on the processes.

FSDP2 is accelerate's, which TRL stands on. Accelerate knows it for accelerators alone, though
torch's works over gloo as well; on a CPU it is told that it is FSDP that it has before it. So what
the tests run on a CPU is what runs on GPUs.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from agentkit.errors import MissingExtraError, UsageError
from agentkit_training.engines.trl.learner import Learner, ShardedLearner
from agentkit_training.policy.policy import Policy

Sharding: TypeAlias = Literal["none", "fsdp"]
"""What processes share: nothing but gradients (DDP), or all that training needs (FSDP2)."""

_SWITCH = "ACCELERATE_USE_FSDP"


def learner_of(policy: Policy, sharding: Sharding) -> Learner:
    """What TRL is given to train.

    Raises:
        UsageError: There is one process, and nobody to share with.
    """
    import torch.distributed as dist

    if sharding == "none":
        return Learner(policy=policy, module=policy.model)
    if not dist.is_initialized() or dist.get_world_size() < 2:
        raise UsageError(
            f"sharding is {sharding!r}, and there is one process; start several with torchrun and "
            'call joined_ranks() first, or set sharding to "none"'
        )
    return ShardedLearner(policy=policy, module=_copied(policy.model))


def _copied(model: Any) -> Any:
    """A copy on the CPU, from where each layer goes to its device when it is sharded."""
    import torch

    memo: dict[int, Any] = {}
    for one in model.parameters():
        if one.device.type != "cpu":
            weight = torch.nn.Parameter(one.detach().cpu(), requires_grad=one.requires_grad)
            memo[id(one)] = weight
    return copy.deepcopy(model, memo)


@contextmanager
def sharding_of(sharding: Sharding, *, on_cpu: bool) -> Iterator[None]:
    """Let accelerate shard what it prepares from here on.

    Args:
        sharding: How.
        on_cpu: Whether the processes train on CPUs.
    """
    if sharding == "none":
        yield
        return
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin

    if not hasattr(Accelerator, "is_fsdp2"):
        raise MissingExtraError(
            'sharding "fsdp"', package="accelerate>=1.6", install='pip install "accelerate>=1.6"'
        )
    before = os.environ.get(_SWITCH)
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap"
    )
    state = Accelerator(cpu=on_cpu, fsdp_plugin=plugin).state
    if on_cpu:
        state.fsdp_plugin = plugin
        for one in (state.__dict__, PartialState._shared_state):  # noqa: SLF001 - it has no setter
            one["distributed_type"] = DistributedType.FSDP
    try:
        yield
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001 - as transformers does
        PartialState(cpu=on_cpu)
        os.environ.pop(_SWITCH, None)
        if before is not None:
            os.environ[_SWITCH] = before
