"""Saving a policy, so that loading the folder gives the same policy again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit_training.atomic import new_folder
from agentkit_training.errors import CheckpointError, PolicyError
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.record import special_tokens, write_record

if TYPE_CHECKING:
    import torch

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
    import torch
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
    wanted = _trainable(policy)
    difference = _difference(saved, wanted)
    if difference:
        raise CheckpointError(
            f"{file} is of another policy than {policy.name}: {difference}. Load the weights and "
            "the LoRA settings that the run began with"
        )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(saved[name])


def _trainable(policy: Policy) -> dict[str, torch.nn.Parameter]:
    return {name: one for name, one in policy.model.named_parameters() if one.requires_grad}


def _difference(saved: dict[str, torch.Tensor], wanted: dict[str, torch.nn.Parameter]) -> str:
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
