"""Which examples make a step, and how a step's examples are laid side by side."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit_training.fine_tuning.examples import Example

if TYPE_CHECKING:
    import torch

IGNORED = -100
"""The label of a token that bears no loss, as PyTorch has it."""

_BUSY_TOKENS = 1024
_MOST_PADDED = 1.25


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some examples as one input, padded on the left so that all end together.

    Answers are short and stand at the end, so that logits are needed for the last few columns
    alone; with a vocabulary of 49,152 these are what takes most memory.

    Attributes:
        ids: Tokens, of shape (examples, length).
        mask: 1 for tokens, 0 for padding.
        labels: For each of the last ``width`` columns the token to be predicted, or ``IGNORED``.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor

    @property
    def width(self) -> int:
        """Columns that may bear loss."""
        return int(self.labels.shape[1])

    @property
    def positions(self) -> torch.Tensor:
        """The position of each token in its own example."""
        return (self.mask.cumsum(1) - 1).clamp(min=0)


def step_orders(count: int, *, batch_size: int, epochs: int, seed: int) -> list[list[int]]:
    """The examples of each step, as indexes.

    Each epoch has an order of its own, drawn from ``seed`` and its number; its last step may be
    smaller. So a run that goes on from a checkpoint sees what it would have seen.

    Example:
        >>> [len(step) for step in step_orders(5, batch_size=2, epochs=2, seed=0)]
        [2, 2, 1, 2, 2, 1]
    """
    orders: list[list[int]] = []
    for epoch in range(epochs):
        order = list(range(count))
        random.Random(f"{seed}:{epoch}").shuffle(order)  # noqa: S311 - an order, not a secret
        orders += [order[at : at + batch_size] for at in range(0, count, batch_size)]
    return orders


def parts(examples: Sequence[Example], *, input_tokens: int) -> Iterator[list[Example]]:
    """A step's examples in parts of similar length, each at most ``input_tokens`` with padding.

    Examples are sorted within their step alone, so that the order of learning stays random. One
    that is longer than the bound is a part of its own. A part that is large enough to keep the
    machine busy takes no example that would be padded by more than a quarter.
    """
    part: list[Example] = []
    for one in sorted(examples, key=len, reverse=True):
        longest = len(part[0]) if part else len(one)
        is_full = longest * (len(part) + 1) > input_tokens
        is_busy = longest * len(part) >= _BUSY_TOKENS
        if part and (is_full or (is_busy and longest > _MOST_PADDED * len(one))):
            yield part
            part = []
        part.append(one)
    if part:
        yield part


def block(examples: Sequence[Example], *, pad: int) -> Block:
    """Examples side by side. Loss is borne by what is written in completions, never by prompts.

    Args:
        examples: At least one.
        pad: The token to fill with; it is never attended to.
    """
    import torch

    length = max(map(len, examples))
    width = max(len(one.completion) for one in examples)
    ids = torch.full((len(examples), length), pad)
    mask = torch.zeros_like(ids)
    labels = torch.full((len(examples), width), IGNORED)
    for row, one in enumerate(examples):
        ids[row, length - len(one) :] = torch.tensor((*one.prompt, *one.completion))
        mask[row, length - len(one) :] = 1
        labels[row, width - len(one.completion) :] = torch.tensor(
            [
                token if taught else IGNORED
                for token, taught in zip(one.completion, one.taught, strict=True)
            ]
        )
    return Block(ids=ids, mask=mask, labels=labels)
