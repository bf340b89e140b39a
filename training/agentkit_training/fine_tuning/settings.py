"""How fine-tuning goes on, and what it tells of each step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from agentkit.errors import UsageError
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.ranges import check_least

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
