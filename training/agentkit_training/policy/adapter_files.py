"""The files of an adapter as PEFT writes them: reading them, and whether they fit a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit.errors import MissingExtraError
from agentkit_training.errors import PolicyError
from agentkit_training.policy.base_digest import base_digest, own_weights
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from types import ModuleType

    from peft import LoraConfig

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


def read_adapter(folder: Path) -> tuple[LoraConfig, dict[str, Any]]:
    """The configuration and the matrices by name.

    Raises:
        PolicyError: There is no adapter, or it is damaged.
        MissingExtraError: PEFT is not installed.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    missing = [name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise PolicyError(
            f"{folder} holds no adapter: {missing[0]} is missing; give a folder that save_adapter "
            "or PEFT wrote"
        )
    try:
        config = peft_module().LoraConfig.from_pretrained(str(folder))
        return config, load_file(folder / WEIGHTS)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise PolicyError(f"the adapter in {folder} can not be read: {error}; save it again") from (
            error
        )


def check_base(policy: Policy, wanted: str, source: str) -> None:
    """Hold the weights under the adapter against those that it was trained over.

    Args:
        policy: The base, without adapters.
        wanted: The digest of the weights that it was trained over.
        source: Where the adapter lies, for messages.

    Raises:
        PolicyError: They are others.
    """
    here = base_digest(policy)
    if here != wanted:
        raise PolicyError(
            f"the adapter in {source} was trained over other weights (digest {wanted[:8]}) than "
            f"those of {policy.name} ({here[:8]}); load the model that it was trained over, or "
            "pass other_base=True if it is to be tried on these"
        )


def check_shapes(
    policy: Policy, config: LoraConfig, saved: dict[str, tuple[int, ...]], folder: Path
) -> None:
    """Hold the adapter's matrices against the layers that they would sit in.

    Args:
        policy: The base, without adapters.
        config: Of the adapter.
        saved: The shape of each matrix.
        folder: Where it lies, for messages.

    Raises:
        PolicyError: One of them fits no layer.
    """
    layers = {name: tuple(one.shape) for name, one in own_weights(policy).items()}
    for name, shape in saved.items():
        layer, _, rest = name.removeprefix("base_model.model.").partition(".lora_")
        ours = layers.get(f"{layer}.weight")
        place = 1 if rest.startswith("A") else 0
        if ours is None or ours[place] != shape[place]:
            there = "has no such layer" if ours is None else f"is of shape {ours} there"
            raise PolicyError(
                f"the adapter in {folder} does not fit {policy.name}: it has a matrix of shape "
                f"{shape} for {layer}, which {there}; load the model that it was trained over"
                f" ({config.base_model_name_or_path})"
            )


def name_base(file: Path, name: str) -> None:
    """Name the base by the policy's name: where it lay is nobody else's business."""
    config = json.loads(file.read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = name
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def peft_module() -> ModuleType:
    """PEFT.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import peft
    except ImportError as error:
        raise MissingExtraError(
            "LoRA", package="peft", install="pip install agentkit-training"
        ) from error
    module: ModuleType = peft
    return module
