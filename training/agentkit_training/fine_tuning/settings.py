"""How fine-tuning goes on, and what it tells of each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from agentkit.errors import UsageError
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import Policy
from agentkit_training.ranges import check_least

if TYPE_CHECKING:
    import torch


PAPER_OPTIMIZER = OptimizerSettings(learning_rate=1e-4, schedule="cosine", warmup_ratio=0.1)
"""ToolACE-R, section 4.1."""

TRL_ROWS = 8
"""Most examples that one process of several reads at once, with TRL's trainer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SftSettings:
    """How to fine-tune. The defaults are those of ToolACE-R, section 4.1.

    Attributes:
        optimizer: How the weights follow the gradient.
        batch_size: Examples of one optimiser step.
        epochs: How often each example is seen.
        max_tokens: Longest example; longer ones are left out and counted.
        input_tokens: Most tokens, padding included, that are read at once; a batch is read in as
            many parts as that takes. It bounds the memory and does not change what is learned.
        seed: Of the order of examples, and of dropout where the policy has any.
        gradient_checkpointing: Whether activations are computed again in the backward pass, which
            saves memory and takes a third more time.
        save_every: Steps between checkpoints, where there is a folder for them.
    """

    optimizer: OptimizerSettings = field(default_factory=lambda: PAPER_OPTIMIZER)
    batch_size: int = 64
    epochs: int = 1
    max_tokens: int = 2048
    input_tokens: int = 4096
    seed: int = 0
    gradient_checkpointing: bool = False
    save_every: int = 50

    def __post_init__(self) -> None:
        check_least(self, "batch_size", "epochs", "max_tokens", "input_tokens", "save_every")


def rows_of_trl(share: int, at_once: int = TRL_ROWS) -> int:
    """How many examples of its share a process reads at once with TRL: a divisor of it.

    Args:
        share: Examples of a batch that the process reads.
        at_once: The most.
    """
    return math.gcd(share, min(at_once, share))


def share_of(batch_size: int, processes: int) -> int:
    """Examples of a batch that each of several processes reads.

    Raises:
        UsageError: They do not share it evenly.
    """
    if batch_size % processes:
        raise UsageError(
            f"sft.batch_size is {batch_size}, which {processes} processes do not share evenly; "
            f"take a multiple of {processes}"
        )
    return batch_size // processes


@dataclass(frozen=True, kw_only=True, slots=True)
class SftStep:
    """What one step did.

    Attributes:
        step: Its number, from 0.
        steps: Steps of the whole run.
        loss: Mean over the tokens that bear loss, before the step.
        gradient_norm: Before clipping.
        learning_rate: Of the step.
        examples: In the batch.
        loss_tokens: Tokens that bear loss.
        read_tokens: Tokens that went through the model, without padding.
        padding_tokens: Padding that went through it beside them.
        seconds: Wall time.
    """

    step: int
    steps: int
    loss: float
    gradient_norm: float
    learning_rate: float
    examples: int
    loss_tokens: int
    read_tokens: int
    padding_tokens: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SftReport:
    """What a run of fine-tuning did.

    Attributes:
        steps: Each step of this start, in order; those before a checkpoint are not repeated.
        examples: Examples that were trained on.
        too_long: Ids of the tasks whose example is longer than ``max_tokens``.
        resumed_at: The step at which this start went on; 0 for a fresh one.
    """

    steps: tuple[SftStep, ...] = ()
    examples: int = 0
    too_long: tuple[str, ...] = ()
    resumed_at: int = 0


Listener: TypeAlias = Callable[[SftStep], None]


def ignore(_: SftStep) -> None:
    """Listen to nothing."""


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
