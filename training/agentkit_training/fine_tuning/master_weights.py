"""``MasterWeights``: float32 copies of coarse weights, which small steps would not move.

A bfloat16 number has eight bits: near 0.05 its neighbours are 0.0002 away, and a step of 0.0001 is
rounded back to where it began. So the optimiser moves copies in float32, and the policy gets them
rounded. Weights that are float32 already are moved themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch


class MasterWeights:
    """The weights that learn, in float32, and their optimiser (AdamW).

    Args:
        policy: Its trainable parameters learn: all of them, or those of its LoRA adapters.
        settings: How they follow the gradient.

    Raises:
        PolicyError: Nothing is trainable.
    """

    def __init__(self, policy: Policy, settings: OptimizerSettings) -> None:
        import torch

        named = policy.model.named_parameters()
        self._own = {name: one for name, one in named if one.requires_grad}
        if not self._own:
            raise PolicyError(
                f"no weight of {policy.name} is trainable; add LoRA adapters, or call "
                "model.requires_grad_(True)"
            )
        self._settings = settings
        self._masters = {
            name: one if one.dtype == torch.float32 else one.detach().float().requires_grad_()
            for name, one in self._own.items()
        }
        self.adam = torch.optim.AdamW(
            list(self._masters.values()),
            lr=settings.learning_rate,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
        )

    def clipped_norm(self) -> float:
        """Take over the gradient of the policy's weights, clip it, and give its norm before."""
        import torch

        for name, master in self._masters.items():
            own = self._own[name]
            if master is not own and own.grad is not None:
                master.grad = own.grad.float()
                own.grad = None
        found = [one for one in self._masters.values() if one.grad is not None]
        limit = self._settings.max_gradient_norm or math.inf
        return float(torch.nn.utils.clip_grad_norm_(found, limit)) if found else 0.0

    def step(self, learning_rate: float) -> None:
        """One step of the optimiser; the policy has the new weights afterwards."""
        for group in self.adam.param_groups:
            group["lr"] = learning_rate
        self.adam.step()
        self._hand_over()

    def forget_gradient(self) -> None:
        """Let go of the gradient."""
        for one in (*self._masters.values(), *self._own.values()):
            one.grad = None

    def is_finite(self) -> bool:
        """Whether each weight is a number."""
        return all(bool(one.isfinite().all()) for one in self._masters.values())

    def state(self) -> dict[str, torch.Tensor]:
        """The weights by name, in float32."""
        return {name: one.detach().cpu() for name, one in self._masters.items()}

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take over weights that ``state`` gave, for the policy as well.

        Raises:
            PolicyError: They belong to another policy.
        """
        import torch

        shapes = {name: tuple(one.shape) for name, one in self._masters.items()}
        given = {name: tuple(one.shape) for name, one in state.items()}
        if given != shapes:
            odd = sorted(dict(given.items() ^ shapes.items()))[:3]
            raise PolicyError(f"the saved weights are those of another policy: see {odd}")
        with torch.no_grad():
            for name, one in self._masters.items():
                one.copy_(state[name])
        self._hand_over()

    def _hand_over(self) -> None:
        import torch

        with torch.no_grad():
            for name, one in self._own.items():
                if one is not self._masters[name]:
                    one.copy_(self._masters[name])
