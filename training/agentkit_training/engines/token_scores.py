"""What an engine wants to know of each token, and how many tokens are looked at at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much is read at once. Only a sequence that is longer by itself exceeds them.

    Attributes:
        tokens: Most tokens, padding included.
        logits: Most numbers of logits. The default is 64 MiB in float32: 340 tokens of a
            vocabulary of 49,152. Four to five times as much memory is needed for a moment.
    """

    tokens: int = 4096
    logits: int = 1 << 24


@dataclass(frozen=True, kw_only=True)
class TokenScores:
    """Figures of tokens, one sequence's completion after another, in float32.

    Attributes:
        logprobs: Log-probability of each; with a gradient where the caller's mode keeps one.
        entropies: Of the distribution that each was drawn from, in nats; without a gradient.
    """

    logprobs: torch.Tensor
    entropies: torch.Tensor


Visit: TypeAlias = "Callable[[Sequence[int], TokenScores], torch.Tensor | None]"
"""Told the places of some sequences and their scores; gives their loss, or None."""


def scored(logits: torch.Tensor, targets: torch.Tensor, *, temperature: float) -> TokenScores:
    """The scores of ``targets`` under ``logits``, of any precision, of shape (…, vocabulary)."""
    import torch

    scores = logits.float()
    if temperature != 1:
        scores = scores / temperature
    total = torch.logsumexp(scores, -1)
    with torch.no_grad():
        probabilities = torch.exp(scores - total[..., None])
        entropies = total - torch.linalg.vecdot(probabilities, scores.detach())
    chosen = scores.gather(-1, targets[..., None])[..., 0]
    return TokenScores(logprobs=chosen - total, entropies=entropies)
