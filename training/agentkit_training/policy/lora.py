"""LoRA adapters through PEFT: small matrices that learn while the model's own weights rest.

    W' = W + (alpha / rank) · B·A,    B = 0 at the start     (Hu et al. 2021, section 4.1)

so that a fresh adapter changes nothing.
"""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentkit.errors import UsageError
from agentkit_training.errors import CheckpointError, PolicyError
from agentkit_training.files import new_folder
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import (
    CONFIG,
    base_digest,
    check_base,
    check_shapes,
    name_base,
    peft_module,
    read_adapter,
    read_record,
    write_record,
)

if TYPE_CHECKING:
    from peft import LoraConfig

ADAPTER = "default"
"""The name under which PEFT keeps the adapter that is trained."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoraSettings:
    """How large adapters are and where they sit. The defaults are ToolACE-R's (section 4.1).

    Attributes:
        rank: Columns of A and B.
        alpha: What the adapter's part is multiplied with, times rank.
        dropout: Share of an adapter's inputs that is dropped while training.
        targets: Endings of the names of the layers, such as ``q_proj``; ``all-linear`` for every
            linear layer but the last.
        rescaled: Whether to divide by the root of the rank instead (rsLoRA), for ranks over 64.
        full_precision: Whether adapters are float32 even over bf16 weights. Steps of a small
            learning rate are lost to rounding otherwise, but not in ``sft``, which keeps float32
            copies of what learns: there a step on a CPU takes 1.4 times as long for nothing.
        seed: Of the matrices A.
    """

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    targets: str | tuple[str, ...] = "all-linear"
    rescaled: bool = False
    full_precision: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha < 1:
            raise UsageError(f"rank is {self.rank} and alpha {self.alpha}; give at least 1 each")
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout is {self.dropout}; give 0 or more, and less than 1")


def with_lora(policy: Policy, settings: LoraSettings = LoraSettings()) -> Policy:
    """Put adapters into a policy; they alone are trainable from then on.

    The model itself is changed, so go on with the policy that is returned. What it writes is as
    before until it is trained.

    Raises:
        PolicyError: It has adapters already, or no layers of these names.
        MissingExtraError: PEFT is not installed.

    Example:
        >>> from agentkit_training import tiny_policy
        >>> policy = with_lora(tiny_policy(), LoraSettings(rank=4))
        >>> len(policy.trainable)  # two matrices for each of seven layers in two blocks
        28
    """
    import torch

    if policy.is_adapted:
        raise PolicyError(f"{policy.name} has LoRA adapters already; merge them first, or go on")
    peft = peft_module()
    config = peft.LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=_targets(settings),
        use_rslora=settings.rescaled,
        bias="none",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng([policy.device] if policy.device.type == "cuda" else []):
        torch.manual_seed(settings.seed)
        return _adapted(policy, config, full_precision=settings.full_precision)


def save_adapter(policy: Policy, folder: str | os.PathLike[str]) -> None:
    """Write the adapter alone, as PEFT does (safetensors), with the digest of its base beside.

    Anything that loads adapters of PEFT loads the folder. It appears whole or not at all.

    Raises:
        PolicyError: The policy has no adapters.
        CheckpointError: The files could not be written; what was there before is as it was.
    """
    from safetensors import SafetensorError

    _require_adapted(policy)
    with new_folder(Path(folder)) as new:
        try:
            policy.model.save_pretrained(
                new, selected_adapters=[ADAPTER], save_embedding_layers=False
            )
        except SafetensorError as error:
            raise CheckpointError(f"{folder} could not be written: {error}") from error
        (new / "README.md").unlink(missing_ok=True)  # an empty form that names the base's place
        name_base(new / CONFIG, policy.name)
        write_record(policy, new, base=base_digest(policy))


def load_adapter(
    policy: Policy,
    folder: str | os.PathLike[str],
    *,
    trainable: bool = True,
    other_base: bool = False,
) -> Policy:
    """Put a saved adapter onto the base that it was trained over.

    The model itself is changed, so go on with the policy that is returned.

    Args:
        policy: The base, without adapters.
        folder: What ``save_adapter`` or PEFT wrote.
        trainable: Whether it goes on learning.
        other_base: Whether weights of the same shape but other values will do.

    Raises:
        PolicyError: There is no adapter, it is damaged, or it belongs to another model.
        MissingExtraError: PEFT is not installed.
    """
    if policy.is_adapted:
        raise PolicyError(f"{policy.name} has LoRA adapters already; load a base without")
    folder = Path(folder)
    config, weights = read_adapter(folder)
    record = read_record(folder)
    if record is not None and record.base and not other_base:
        check_base(policy, record.base, f"{folder}")
    saved = {name: tuple(one.shape) for name, one in weights.items()}
    check_shapes(policy, config, saved, folder)
    config.inference_mode = not trainable
    config.base_model_name_or_path = None  # PEFT would warn that this base has another name
    full = all(str(one.dtype) == "torch.float32" for one in weights.values())
    adapted = _adapted(policy, config, full_precision=full)
    peft_module().set_peft_model_state_dict(adapted.model, weights, adapter_name=ADAPTER)
    return adapted


def merged(policy: Policy) -> Policy:
    """A policy of plain weights that writes as the adapted one does, up to rounding.

    The given policy is left as it is, so that memory for a second copy is needed.

    Raises:
        PolicyError: It has no adapters.
    """
    _require_adapted(policy)
    model = copy.deepcopy(policy.model).merge_and_unload()
    for leftover in ("peft_config", "_hf_peft_config_loaded"):
        model.__dict__.pop(leftover, None)
    for parameter in model.parameters():
        parameter.requires_grad_(requires_grad=True)
    return replace(policy, model=model.eval())


def _adapted(policy: Policy, config: LoraConfig, *, full_precision: bool) -> Policy:
    try:
        model = peft_module().get_peft_model(
            policy.model, config, adapter_name=ADAPTER, autocast_adapter_dtype=full_precision
        )
    except ValueError as error:
        names = sorted({name.rsplit(".", 1)[-1] for name, _ in policy.model.named_modules()})
        raise PolicyError(
            f"{policy.name} can not take these adapters: {error} Its layers end in "
            + ", ".join(filter(None, names))
        ) from error
    return replace(policy, model=model.eval())


def _targets(settings: LoraSettings) -> str | list[str]:
    if isinstance(settings.targets, str):
        return settings.targets if settings.targets == "all-linear" else [settings.targets]
    return list(settings.targets)


def _require_adapted(policy: Policy) -> None:
    if not policy.is_adapted:
        raise PolicyError(f"{policy.name} has no LoRA adapters; make some using with_lora")
