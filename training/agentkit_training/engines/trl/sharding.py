"""Sharded training: weights, gradients and the optimiser's state lie in shares on the processes.

FSDP2 and DeepSpeed come through accelerate, which TRL stands on. Accelerate knows both for
accelerators alone, though both work over gloo as well; on a CPU it is told that it has them before
it. So what the tests run on a CPU is what runs on GPUs.
"""

from __future__ import annotations

import copy
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from agentkit.errors import MissingExtraError, UsageError
from agentkit_training.engines.adam import KeptAdam
from agentkit_training.engines.trl.learner import Learner, ShardedLearner
from agentkit_training.engines.trl.sharded_adam import ShardedAdam
from agentkit_training.engines.trl.zero3 import Zero3Adam, Zero3Learner, zero3_config
from agentkit_training.policy.policy import Policy

Sharding: TypeAlias = Literal["none", "fsdp", "zero3"]
"""What processes share: nothing but gradients (DDP), or all that training needs, by torch's FSDP2
or by DeepSpeed's ZeRO-3."""

_SWITCHES = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED")
"""What accelerate sets for those after it."""


def learner_of(policy: Policy, sharding: Sharding) -> Learner:
    """What TRL is given to train.

    Raises:
        UsageError: There is one process, and nobody to share with.
        MissingExtraError: What shards is not installed.
    """
    import torch.distributed as dist

    if sharding == "none":
        return Learner(policy=policy, module=policy.model)
    if not dist.is_initialized() or dist.get_world_size() < 2:
        raise UsageError(
            f"sharding is {sharding!r}, and there is one process; start several with torchrun and "
            'call joined_ranks() first, or set sharding to "none"'
        )
    if sharding == "zero3":
        _require_deepspeed()
        return Zero3Learner(policy=policy, module=_copied(policy.model))
    learner = ShardedLearner(policy=policy, module=_copied(policy.model))
    if learner.keeps_masters:
        for one in learner.trainable:
            one.data = one.data.float()
    return learner


def adam_of(sharding: Sharding, file: str) -> KeptAdam:
    """What keeps the optimiser.

    Args:
        sharding: Where its state lies.
        file: The name of its file in a checkpoint.
    """
    match sharding:
        case "none":
            return KeptAdam(file=file)
        case "fsdp":
            return ShardedAdam(file=file)
        case "zero3":
            return Zero3Adam(file=file)


def _require_deepspeed() -> None:
    if importlib.util.find_spec("deepspeed") is None:
        raise MissingExtraError(
            'sharding "zero3"',
            package="deepspeed",
            install="pip install 'agentkit-training[deepspeed]'",
        )


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
def sharding_of(sharding: Sharding, *, on_cpu: bool, is_bf16: bool) -> Iterator[None]:
    """Let accelerate shard what it prepares from here on.

    Args:
        sharding: How.
        on_cpu: Whether the processes train on CPUs.
        is_bf16: Whether the model computes in bfloat16 with weights that are kept in float32.

    Raises:
        MissingExtraError: What shards is not installed.
    """
    if sharding == "none":
        yield
        return
    from accelerate.state import AcceleratorState, PartialState
    from transformers.integrations import unset_hf_deepspeed_config

    before = {name: os.environ.get(name) for name in _SWITCHES}
    try:
        if sharding == "fsdp":
            _use_fsdp(on_cpu=on_cpu, is_bf16=is_bf16)
        else:
            _use_zero3(on_cpu=on_cpu, is_bf16=is_bf16)
        yield
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001 - as transformers does
        PartialState(cpu=on_cpu)
        unset_hf_deepspeed_config()  # or models that are loaded later are split up as well
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _use_fsdp(*, on_cpu: bool, is_bf16: bool) -> None:
    import torch
    from accelerate import Accelerator
    from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
    from torch.distributed.fsdp import MixedPrecisionPolicy

    if not hasattr(Accelerator, "is_fsdp2"):
        raise MissingExtraError(
            'sharding "fsdp"', package="accelerate>=1.6", install='pip install "accelerate>=1.6"'
        )
    computed = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="transformer_based_wrap",
        mixed_precision_policy=computed if is_bf16 else None,
    )
    state = Accelerator(cpu=on_cpu, fsdp_plugin=plugin).state
    if on_cpu:
        state.fsdp_plugin = plugin
        _declare(state, DistributedType.FSDP)


def _use_zero3(*, on_cpu: bool, is_bf16: bool) -> None:
    from accelerate import Accelerator
    from accelerate.utils import DeepSpeedPlugin, DistributedType

    plugin = DeepSpeedPlugin(hf_ds_config=zero3_config(is_bf16=is_bf16))
    state = Accelerator(cpu=on_cpu, deepspeed_plugin=plugin).state
    if on_cpu:
        state.deepspeed_plugins = {"default": plugin}
        plugin.select(_from_accelerator_state=True)
        _declare(state, DistributedType.DEEPSPEED)


def _declare(state: Any, kind: Any) -> None:
    """Tell accelerate what it has before it; there is no other way on a CPU."""
    from accelerate.state import PartialState

    for one in (state.__dict__, PartialState._shared_state):  # noqa: SLF001 - it has no setter
        one["distributed_type"] = kind
