"""Sharded training: weights, gradients and the optimiser's state lie in shares on the processes.

FSDP2 and DeepSpeed come through accelerate, which TRL stands on. Accelerate knows both for
accelerators alone, though both work over gloo as well; on a CPU it is told that it has them before
it. So what the tests run on a CPU is what runs on GPUs.
"""

from __future__ import annotations

import copy
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentkit.errors import MissingExtraError, UsageError
from agentkit_training.engines.adam import KeptAdam
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.trl.learner import Learner, ShardedLearner
from agentkit_training.engines.trl.sharded_adam import ShardedAdam, is_first
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch


_MOMENTS = ("exp_avg", "exp_avg_sq")


def zero3_config(*, is_bf16: bool) -> dict[str, Any]:
    """What DeepSpeed is told; what is ``auto`` follows from what TRL is told.

    Args:
        is_bf16: Whether weights are bfloat16; DeepSpeed then keeps them in float32 beside, in
            shares.
    """
    told: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "zero_optimization": {"stage": 3},
    }
    return told | ({"bf16": {"enabled": True}} if is_bf16 else {})


@dataclass(frozen=True, kw_only=True)
class Zero3Learner(ShardedLearner):
    """A copy of the policy's module, whose weights lie in DeepSpeed's partitions."""

    @property
    def steps_itself(self) -> bool:
        """The step comes with the backward pass."""
        return True

    def begin(self, trainer: Any, look: Callable[[], bool]) -> None:
        """Let ``look`` see each gradient before DeepSpeed's step, and take it or leave it."""
        engine = trainer.deepspeed
        step = engine.step

        def looked(*args: Any, **kwargs: Any) -> None:
            if look():
                step(*args, **kwargs)
            else:
                engine.optimizer.zero_grad()

        engine.step = looked

    def gradient_norm(self) -> float:
        """Of all gradients together, of all processes, before they are clipped."""
        from deepspeed.utils import safe_get_local_grad  # type: ignore[import-not-found]  # optional

        return self._norm(safe_get_local_grad)

    def weight_norm(self) -> float:
        """Of all weights that learn; no number says that one of them is none."""
        from deepspeed.utils import safe_get_local_fp32_param

        return self._norm(safe_get_local_fp32_param)

    @contextmanager
    def gathered(self, share: Any) -> Iterator[torch.Tensor]:
        """A weight as a whole, for as long as it is read; every process asks for it."""
        import deepspeed  # type: ignore[import-not-found]  # optional

        with deepspeed.zero.GatheredParameters([share]):
            yield share.data

    def _norm(self, part: Callable[[Any], torch.Tensor | None]) -> float:
        import torch
        import torch.distributed as dist

        parts = [one for one in map(part, self.trainable) if one is not None]
        device = parts[0].device if parts else self.policy.device
        total = torch.zeros((), dtype=torch.float64, device=device)
        for one in parts:
            total += torch.linalg.vector_norm(one.detach().float()).double() ** 2
        dist.all_reduce(total)
        return float(total.sqrt())


@dataclass(kw_only=True)
class Zero3Adam(ShardedAdam):
    """An AdamW that DeepSpeed steps over its partitions; saved as that of a single process."""

    _weights: tuple[Any, ...] = field(init=False, default=())
    _coming: tuple[Any, ...] = field(init=False, default=())

    def empty(
        self, parameters: Iterable[torch.nn.Parameter], settings: OptimizerSettings
    ) -> torch.optim.Optimizer:
        """See ``KeptAdam.empty``; the order of the weights is kept, which DeepSpeed gives up."""
        self._coming = tuple(parameters)
        return super().empty(self._coming, settings)

    def fill(self, adam: torch.optim.Optimizer) -> None:
        """See ``KeptAdam.fill``.

        Raises:
            CheckpointError: A restored state is of another model.
        """
        before = self._adam
        if self._restored is None and before is not None:
            known = self._gathered(before, is_kept=True)
            self._weights = self._coming
            self.load(adam, known)
            self._adam = adam
        else:
            self._weights = self._coming
            super().fill(adam)

    def whole(self, adam: torch.optim.Optimizer) -> dict[str, Any]:
        """The state of all weights, on the CPU of rank 0; every process asks for it."""
        return self._gathered(adam, is_kept=is_first())

    def load(self, adam: torch.optim.Optimizer, whole: dict[str, Any]) -> None:
        """Keep this process's part of a whole state.

        Raises:
            ValueError: It is of other weights.
        """
        states = whole["state"]
        shapes = [tuple(one["exp_avg"].shape) for _, one in sorted(states.items())]
        wanted = [tuple(one.ds_shape) for one in self._weights]
        if states and shapes != wanted:
            raise ValueError(f"{len(wanted)} weights of other shapes than the {len(shapes)} there")
        if not states:
            return
        _make_room(adam, self._weights, states[0]["step"])
        for number, weight in enumerate(self._weights):
            for name in _MOMENTS:
                _put_part(weight, states[number][name], name)
        for weight, master in zip(self._weights, whole.get("masters", ()), strict=False):
            _put_part(weight, master)

    def _gathered(self, adam: torch.optim.Optimizer, *, is_kept: bool) -> dict[str, Any]:
        from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

        steps = [one["step"] for one in adam.state.values()]
        found: dict[int, dict[str, Any]] = {}
        for number, weight in enumerate(self._weights if steps else ()):
            found[number] = {"step": steps[0].clone()}  # each weight counts for itself
            for name in _MOMENTS:
                moment = safe_get_full_optimizer_state(weight, name)
                found[number][name] = moment.cpu() if is_kept else None
        group = {name: value for name, value in adam.param_groups[0].items() if name != "params"}
        group["params"] = list(range(len(self._weights)))
        masters = []
        for weight in self._weights if self.keeps_masters else ():
            master = safe_get_full_fp32_param(weight)
            masters.append(master.cpu() if is_kept else None)
        return {"state": found, "param_groups": [group], "masters": masters}


def _make_room(adam: torch.optim.Optimizer, weights: Sequence[Any], step: torch.Tensor) -> None:
    """A state for each of DeepSpeed's partitions, which otherwise comes with the first step."""
    import torch

    for part in weights[0]._z3_optimizer.fp32_partitioned_groups_flat:  # noqa: SLF001 - no other way
        adam.state[part] = {"step": step.clone()} | {
            name: torch.zeros_like(part.data) for name in _MOMENTS
        }


def _put_part(weight: Any, value: torch.Tensor, name: str = "") -> None:
    """Write this process's part of a moment, or of the weight itself; the last is filled up."""
    import torch
    import torch.distributed as dist
    from deepspeed.utils import (
        safe_get_local_fp32_param,
        safe_set_local_fp32_param,
        safe_set_local_optimizer_state,
    )

    size = safe_get_local_fp32_param(weight).numel()
    flat = value.flatten()
    flat = torch.nn.functional.pad(flat, (0, size * dist.get_world_size() - flat.numel()))
    own = flat[size * dist.get_rank() : size * (dist.get_rank() + 1)]
    if name:
        safe_set_local_optimizer_state(weight, own, name)
    else:
        safe_set_local_fp32_param(weight, own)


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
