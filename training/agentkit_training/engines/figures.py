"""Figures of an update's health, gathered piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit_training.engines.objective import Objective, divergences, is_clipped

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """Means over the tokens that were read and bear loss; 0 where there are none.

    Attributes:
        entropy: Of the distributions that tokens were drawn from, in nats.
        divergence: KL divergence to the reference, in nats for a token; 0 without a reference.
        clip_share: Share of tokens whose ratio the bound holds back.
        max_log_ratio: Largest |log-probability now - when it was sampled|. Before the first update
            on fresh rollouts it is rounding (1e-5 in float32, some 0.01 to 0.1 in bf16); much more
            says that what was written and what is trained on are not read alike.
    """

    entropy: float = 0.0
    divergence: float = 0.0
    clip_share: float = 0.0
    max_log_ratio: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Tokens that bear loss, one entry each.

    Attributes:
        logprobs: Under the current weights.
        old: What the ratio is taken against.
        sampled: When the tokens were written.
        advantages: Of the rollouts that they belong to.
        reference: Under the reference; None without one.
        entropies: Of the distributions that they stand in.
    """

    logprobs: torch.Tensor
    old: torch.Tensor
    sampled: torch.Tensor
    advantages: torch.Tensor
    reference: torch.Tensor | None
    entropies: torch.Tensor


class Gathered:
    """Sums over pieces of a batch."""

    def __init__(self) -> None:
        self._tokens = 0
        self._entropy = self._divergence = self._clipped = self._log_ratio = 0.0

    def add(self, tokens: Tokens, objective: Objective) -> None:
        """Add a piece."""
        logprobs = tokens.logprobs.detach()
        if not len(logprobs):
            return
        clipped = is_clipped(
            logprobs, old=tokens.old, advantages=tokens.advantages, objective=objective
        )
        self._tokens += len(logprobs)
        self._entropy += float(tokens.entropies.sum())
        self._clipped += int(clipped.sum())
        if tokens.reference is not None:
            self._divergence += float(divergences(logprobs, tokens.reference).sum())
        distance = (logprobs - tokens.sampled).abs().max()
        self._log_ratio = max(self._log_ratio, float(distance))

    def health(self) -> Health:
        """The means so far."""
        tokens = max(1, self._tokens)
        return Health(
            entropy=self._entropy / tokens,
            divergence=self._divergence / tokens,
            clip_share=self._clipped / tokens,
            max_log_ratio=self._log_ratio,
        )
