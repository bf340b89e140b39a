"""The weights under adapters: by name, and as a digest that tells models and versions apart."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch


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
