"""Saving a policy, so that loading the folder gives the same policy again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentkit.errors import MissingExtraError
from agentkit_training.errors import CheckpointError, PolicyError
from agentkit_training.files import new_folder
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from types import ModuleType

    import torch
    from peft import LoraConfig
    from transformers import PreTrainedTokenizerBase


def base_digest(policy: Policy) -> str:
    """A digest of the weights under the adapters, equal for equal weights at either precision.

    It reads the shape and the first values of each weight, in bfloat16, so that it takes
    milliseconds; it tells models and their versions apart and is no seal.
    """
    import torch

    digest = hashlib.sha256()
    for name, weight in sorted(own_weights(policy).items()):
        values = weight.detach().flatten()[:16].to(torch.bfloat16).float().cpu()
        digest.update(f"{name}{tuple(weight.shape)}{values.tolist()}".encode())
    return digest.hexdigest()[:32]


def own_weights(policy: Policy) -> dict[str, torch.nn.Parameter]:
    """The model's own weights under their own names, adapters or not."""
    found = {}
    for name, weight in policy.model.named_parameters():
        if ".lora_" not in name:
            plain = name.removeprefix("base_model.model.").replace(".base_layer.", ".")
            found[plain] = weight
    return found


RECORD = "agentkit_policy.json"
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


class PolicyRecord(BaseModel):
    """The file ``agentkit_policy.json``.

    Attributes:
        format: Of this file.
        name: The policy's name.
        end_ids: The tokens that end an answer.
        special_tokens: The tokenizer's special tokens, by their name in transformers.
        base: For an adapter, the digest of the weights that it was trained over.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    format: Literal[1] = 1
    name: str
    end_ids: tuple[int, ...] = Field(min_length=1)
    special_tokens: dict[str, str] = {}
    base: str = ""


def write_record(policy: Policy, folder: Path, *, base: str = "") -> None:
    """Write down what ``policy`` is, into ``folder``."""
    record = PolicyRecord(
        name=policy.name,
        end_ids=tuple(sorted(policy.end_ids)),
        special_tokens=special_tokens(policy.tokenizer),
        base=base,
    )
    (folder / RECORD).write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_record(folder: Path) -> PolicyRecord | None:
    """What ``write_record`` wrote; None when the folder is from elsewhere.

    Raises:
        PolicyError: The file is damaged, or written by a newer release.
    """
    file = folder / RECORD
    if not file.is_file():
        return None
    try:
        return PolicyRecord.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise PolicyError(
            f"{file} can not be read: {error}. It is damaged, or a newer agentkit-training wrote "
            "it; save the policy again, or delete the file to go by the tokenizer alone"
        ) from error


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, str]:
    """The special tokens that a tokenizer has, by name."""
    found = {name: getattr(tokenizer, name, None) for name in SPECIAL_TOKENS}
    return {name: str(token) for name, token in found.items() if token is not None}


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


_WEIGHTS = "trainable.safetensors"


def save_policy(policy: Policy, folder: str | os.PathLike[str]) -> None:
    """Write weights, tokenizer and template; ``load_policy(folder)`` gives the same policy.

    The folder is one of transformers with one file beside, so that anything that reads such
    folders reads it. It appears whole or not at all; one that was there is replaced.

    Args:
        policy: What to save, without adapters.
        folder: Where to.

    Raises:
        PolicyError: The policy has LoRA adapters; save those, or merge them.
        CheckpointError: The files could not be written; what was there before is as it was.
    """
    if policy.is_adapted:
        raise PolicyError(
            f"{policy.name} has LoRA adapters; save them with save_adapter, which takes little "
            "space, or save merged(policy)"
        )
    with new_folder(Path(folder)) as new, _failures(Path(folder)):
        policy.model.save_pretrained(new)
        save_tokenizer(policy, new)
        write_record(policy, new)


def save_tokenizer(policy: Policy, folder: Path) -> None:
    """Write the tokenizer into a folder, with the special tokens that it has now."""
    policy.tokenizer.save_pretrained(folder)
    file = folder / "tokenizer_config.json"
    config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    for ours in ("is_local", "local_files_only", "name_or_path"):  # of the place it came from
        config.pop(ours, None)
    config |= special_tokens(policy.tokenizer)
    text = json.dumps(config, indent=2, ensure_ascii=False, sort_keys=True)
    file.write_text(text + "\n", encoding="utf-8")


def save_weights(policy: Policy, folder: Path) -> None:
    """Write the trainable weights alone into ``folder``, for ``restore_weights``.

    This is what a checkpoint needs: small for LoRA, and exact to the bit for either. The folder
    must exist; whoever writes the checkpoint makes it appear whole.

    Raises:
        CheckpointError: The file could not be written.
    """
    from safetensors.torch import save_file

    with _failures(folder):
        save_file(
            {name: one.detach().contiguous() for name, one in _trainable(policy).items()},
            folder / _WEIGHTS,
        )


def restore_weights(policy: Policy, folder: Path) -> None:
    """Put back what ``save_weights`` wrote, in place, so that optimisers keep their parameters.

    Raises:
        CheckpointError: There is no such file, or it is of other weights; nothing was changed.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = folder / _WEIGHTS
    if not file.is_file():
        raise CheckpointError(f"{folder} holds no weights ({_WEIGHTS}); give a checkpoint's folder")
    try:
        saved = load_file(file)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{file} can not be read: {error}; go on from another checkpoint"
        ) from error
    put_weights(policy, saved, source=str(file))


def trainable_weights(policy: Policy) -> dict[str, torch.Tensor]:
    """A copy of the weights that learn, by name, on the CPU."""
    return {name: one.detach().cpu().clone() for name, one in _trainable(policy).items()}


def put_weights(policy: Policy, saved: Mapping[str, torch.Tensor], *, source: str) -> None:
    """Give a policy the weights that learn, in place.

    Args:
        policy: The policy.
        saved: The weights, by name.
        source: Where they come from, for messages.

    Raises:
        CheckpointError: They are of another policy; nothing was changed.
    """
    import torch

    wanted = _trainable(policy)
    if difference := _difference(saved, wanted):
        raise CheckpointError(
            f"{source} is of another policy than {policy.name}: {difference}. Load the weights and "
            "the LoRA settings that the run began with"
        )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(saved[name])


def _trainable(policy: Policy) -> dict[str, torch.nn.Parameter]:
    return {name: one for name, one in policy.model.named_parameters() if one.requires_grad}


def _difference(saved: Mapping[str, torch.Tensor], wanted: dict[str, torch.nn.Parameter]) -> str:
    """How two sets of weights differ, in a few words; empty when they do not."""
    for names, what in (
        (wanted.keys() - saved.keys(), "the file lacks"),
        (saved.keys() - wanted.keys(), "the policy does not train"),
    ):
        if names:
            return f"{what} {min(names)} ({len(names)} such)"
    for name, parameter in wanted.items():
        ours, theirs = parameter, saved[name]
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            return (
                f"{name} is {theirs.dtype} of shape {tuple(theirs.shape)} in the file and "
                f"{ours.dtype} of shape {tuple(ours.shape)} here"
            )
    return ""


@contextmanager
def _failures(folder: Path) -> Iterator[None]:
    """Turn the errors of those who write files into ours."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{folder} could not be written: {error}; free space on the disk, or give another "
            "folder. What was there before is as it was"
        ) from error
