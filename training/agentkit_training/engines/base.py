"""The seam between an engine and what it trains on: ``Engine`` asks a ``Source``.

An engine owns the optimiser and the steps. Which tasks are tried, with which library, and what a
rollout is worth is the source's business, and so is what happens between steps: evolution of the
library, records, checkpoints. So both engines train exactly the same thing.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from agentkit.errors import UsageError
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import Rollout

if TYPE_CHECKING:
    from torch import Tensor, device
    from torch.optim import Optimizer


Schedule: TypeAlias = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerSettings:
    """How the weights follow the gradient (AdamW).

    Attributes:
        learning_rate: At its highest.
        schedule: How it falls after the warm-up, to 0 at the last step.
        warmup_ratio: Share of the steps in which it rises from 0.
        weight_decay: Of AdamW.
        betas: Of AdamW.
        max_gradient_norm: To which the gradient is clipped; 0 does not clip.

    Raises:
        UsageError: A number is out of range; a learning rate of 0 changes nothing and is allowed.
    """

    learning_rate: float = 1e-5
    schedule: Schedule = "constant"
    warmup_ratio: float = 0.0
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    max_gradient_norm: float = 1.0

    def __post_init__(self) -> None:
        for name in ("learning_rate", "weight_decay", "max_gradient_norm"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UsageError(f"optimizer.{name} is {getattr(self, name)}; give 0 or more")
        if not 0 <= self.warmup_ratio <= 1:
            raise UsageError(
                f"optimizer.warmup_ratio is {self.warmup_ratio}; give a share from 0 to 1"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """Which part of a step's tasks a process takes.

    Attributes:
        rank: Its number, from 0; 0 decides about the library.
        world: How many processes there are.
    """

    rank: int = 0
    world: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class StepReport:
    """What one step did, or one update of several in it. Time is not compared.

    Attributes:
        step: Its number, from 0.
        loss: Before the step.
        gradient_norm: Before clipping.
        learning_rate: Of the step; 0 where the policy stays as it is.
        rows: Sequences in the batch.
        read_rows: Those that have a gradient, by an advantage or a divergence.
        read_tokens: Tokens that went through the model for the update.
        loss_tokens: Tokens of the batch that bear loss.
        rollout_seconds: Wall time of making the rollouts.
        update_seconds: Wall time of the update.
        too_long: Sequences left out because they are longer than the model's window.
        entropy: Mean over the tokens read, in nats.
        divergence: KL divergence to the reference, mean over the tokens read, in nats.
        clip_share: Share of the tokens read whose ratio was held back.
        max_log_ratio: Largest difference between a token's log-probability when it was sampled and
            when it was first trained on. Before the first update on fresh rollouts it is rounding
            (1e-5 in float32, some 0.01 to 0.1 in bf16); much more says that what was written and
            what is trained on are not read alike.
    """

    step: int
    loss: float = 0.0
    gradient_norm: float = 0.0
    learning_rate: float = 0.0
    rows: int = 0
    read_rows: int = 0
    read_tokens: int = 0
    loss_tokens: int = 0
    rollout_seconds: float = field(default=0.0, compare=False)
    update_seconds: float = field(default=0.0, compare=False)
    too_long: int = 0
    entropy: float = 0.0
    divergence: float = 0.0
    clip_share: float = 0.0
    max_log_ratio: float = 0.0

    @property
    def skipped(self) -> float:
        """Share of the sequences that nothing was learned from.

        They have neither an advantage nor a divergence that counts, or are too long.
        """
        return 1 - self.read_rows / self.rows if self.rows else 0.0

    @property
    def has_learned_nothing(self) -> bool:
        """Whether the policy was to learn, and no sequence had anything to teach."""
        return self.learning_rate > 0 and self.skipped == 1


COUNTS = ("rows", "read_rows", "read_tokens", "loss_tokens", "too_long")
"""Figures of a report that add up, over updates and over processes."""


class Source(Protocol):
    """What an engine trains on."""

    def rollouts(self, step: int, share: Share) -> Sequence[Rollout]:
        """The rollouts of one step, rewarded and weighted, the attempts at a task together.

        Equal for equal steps: an engine that goes on from a checkpoint asks as the first one did.
        """
        ...

    def finished(self, report: StepReport) -> None:
        """Told after each step, with the new weights in place; the library may change now."""
        ...


class Engine(Protocol):
    """Trains a policy on what a source gives it."""

    def train(self, policy: Policy, source: Source, *, steps: int) -> None:
        """Take steps until ``steps`` have been taken, those before a restored state included.

        Raises:
            DivergedError: The loss or the gradient is not a number; the weights are as before.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write the optimiser's state, and what else goes on from it, into ``folder``."""
        ...

    def restore(self, folder: Path) -> None:
        """Go on from what ``save`` wrote.

        Raises:
            CheckpointError: It can not be read, or belongs to other settings.
        """
        ...


def rate_factor(settings: OptimizerSettings, *, step: int, steps: int) -> float:
    """What the learning rate is multiplied with at ``step``, as transformers' schedules have it.

    Args:
        settings: The schedule and the warm-up.
        step: From 0.
        steps: In the whole run.

    Example:
        >>> cosine = OptimizerSettings(schedule="cosine")
        >>> [round(rate_factor(cosine, step=step, steps=4), 3) for step in range(4)]
        [1.0, 0.854, 0.5, 0.146]
    """
    warmup = math.ceil(settings.warmup_ratio * steps)
    if step < warmup:
        return step / max(1, warmup)
    progress = (step - warmup) / max(1, steps - warmup)
    match settings.schedule:
        case "constant":
            return 1.0
        case "linear":
            return max(0.0, 1.0 - progress)
        case "cosine":
            return max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))


def set_rate(adam: Optimizer, settings: OptimizerSettings, *, step: int, steps: int) -> float:
    """Give an optimiser the learning rate of a step; what it is."""
    rate = settings.learning_rate * rate_factor(settings, step=step, steps=steps)
    for group in adam.param_groups:
        group["lr"] = rate
    return rate


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomState:
    """The random generators of this process, as they were.

    Attributes:
        python: Of ``random``.
        numpy: Of numpy's global generator.
        cpu: Of torch on the CPU.
        cuda: Of torch on the GPU of the policy; None where that is on the CPU.
        place: Where the policy is.
    """

    python: tuple[Any, ...]
    numpy: tuple[Any, ...]
    cpu: Tensor
    cuda: Tensor | None
    place: device

    @classmethod
    def now(cls, place: device) -> RandomState:
        """The state of this moment.

        Args:
            place: Where the policy is.
        """
        import numpy as np
        import torch

        return cls(
            python=random.getstate(),
            numpy=tuple(np.random.get_state()),  # noqa: NPY002 - the global one is what TRL seeds
            cpu=torch.get_rng_state(),
            cuda=torch.cuda.get_rng_state(place) if place.type == "cuda" else None,
            place=place,
        )

    def restore(self) -> None:
        """Put every generator back."""
        import numpy as np
        import torch

        random.setstate(self.python)
        np.random.set_state(self.numpy)  # noqa: NPY002 - the global one is what TRL seeds
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state(self.cuda, self.place)


@contextmanager
def drawing(place: device, *numbers: int) -> Iterator[None]:
    """Let torch draw by a few numbers together, then let every generator go on as it was.

    Args:
        place: Where the policy is.
        numbers: Such as seed and step.
    """
    before = RandomState.now(place)
    seed_torch(*numbers)
    try:
        yield
    finally:
        before.restore()


def seed_torch(*numbers: int) -> None:
    """Seed torch on every device with a few numbers together, such as seed, step and process."""
    import torch

    text = ",".join(map(str, numbers)).encode()
    torch.manual_seed(int.from_bytes(hashlib.sha256(text).digest()[:7], "big"))
