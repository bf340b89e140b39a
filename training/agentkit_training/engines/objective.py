"""The loss of GRPO for each token, and how tokens are put together (ToolDNA, Eq. 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

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


_BYTES_OF_LOGIT = 20
"""In float32, with what is kept of it for the gradient."""


def logits_with_room(device: torch.device | str) -> int:
    """How many logits fit beside a policy: a quarter of a GPU's free memory; the default elsewhere.

    The default keeps a CPU's caches warm. On a GPU it would mean a pass for each sequence.

    Args:
        device: Where the policy is by now.

    Example:
        >>> logits_with_room("cpu") == Limits().logits
        True
    """
    import torch

    if torch.device(device).type != "cuda":
        return Limits().logits
    free, _ = torch.cuda.mem_get_info(device)
    return max(Limits().logits, min(1 << 30, free // 4 // _BYTES_OF_LOGIT))


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


LossType: TypeAlias = Literal["grpo", "bnpo", "dapo", "dr_grpo"]
"""How token losses become one number, named as in TRL: ``grpo`` takes the mean of each output's
mean, ``bnpo`` and ``dapo`` the mean over all tokens of the batch, ``dr_grpo`` divides by a constant
number of tokens for each output. An output is all that a rollout wrote, in however many
sequences."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective:
    """What one update makes larger.

    Attributes:
        loss_type: How token losses become one number.
        clip_low: How far below 1 the probability ratio counts (epsilon; 0.2 in ToolDNA).
        clip_high: How far above 1 it counts.
        kl_coefficient: Weight of the KL divergence to the reference (beta; 0.001 in
            ToolDNA and SEAL).
        max_completion_tokens: The constant of ``dr_grpo``.
        old_logprobs: What the ratio is taken against: ``current`` for one update on fresh
            rollouts, where both are equal but for rounding; ``sampled`` for those recorded when
            the rollouts were written.
        temperature: That the rollouts were sampled at; probabilities are those at this one.
    """

    loss_type: LossType = "dapo"
    clip_low: float = 0.2
    clip_high: float = 0.2
    kl_coefficient: float = 0.0
    max_completion_tokens: int = 256
    old_logprobs: Literal["current", "sampled"] = "current"
    temperature: float = 1.0


def token_losses(
    logprobs: torch.Tensor,
    *,
    old: torch.Tensor,
    advantages: torch.Tensor,
    reference: torch.Tensor | None,
    objective: Objective,
) -> torch.Tensor:
    """The clipped loss of each token, and its share of the KL divergence.

    ``-min(rho A, clip(rho, 1 - low, 1 + high) A) + beta (exp(d) - d - 1)``, with the ratio
    ``rho = exp(logprobs - old)`` and ``d = reference - logprobs``, Schulman's estimator of the
    divergence, which is never negative.

    Args:
        logprobs: Of the tokens under the current weights.
        old: Under the weights that wrote them.
        advantages: Of the rollout that each token belongs to.
        reference: Under the reference; None leaves the divergence out.
        objective: Bounds and coefficients.

    Returns:
        One loss for each token, of the shape of ``logprobs``.
    """
    import torch

    ratio = torch.exp(logprobs - old)
    clipped = ratio.clamp(1 - objective.clip_low, 1 + objective.clip_high)
    losses = -torch.min(ratio * advantages, clipped * advantages)
    if reference is not None and objective.kl_coefficient:
        losses = losses + objective.kl_coefficient * divergences(logprobs, reference)
    return losses


def divergences(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Schulman's estimate of the KL divergence to the reference, for each token; never negative."""
    import torch

    difference = reference - logprobs
    return torch.expm1(difference) - difference


def is_clipped(
    logprobs: torch.Tensor, *, old: torch.Tensor, advantages: torch.Tensor, objective: Objective
) -> torch.Tensor:
    """Where the bound holds the ratio back, so that the token has no gradient of its advantage."""
    import torch

    ratio = torch.exp(logprobs - old)
    falls = (ratio < 1 - objective.clip_low) & (advantages < 0)
    return falls | ((ratio > 1 + objective.clip_high) & (advantages > 0))


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSize:
    """How much a batch holds, on all processes together.

    Attributes:
        outputs: Rollouts: the parts that its sequences are of them, summed.
        tokens: That bear loss.
    """

    outputs: float
    tokens: int


def token_share(length: int, part: float, *, size: BatchSize, objective: Objective) -> float:
    """What the losses of a sequence's tokens are multiplied with before they are summed.

    GRPO's ``1/G sum_i 1/|o_i| sum_t`` (ToolDNA, Eq. 1) is over outputs: where a rollout wrote
    several sequences, ``o_i`` is all of them, so that it weighs no more than one that wrote one.

    Args:
        length: Tokens of the sequence that bear loss.
        part: Which part they are of what its rollout wrote, see ``TrainingRow``.
        size: Of the whole batch.
        objective: Says how outputs are put together.

    Returns:
        The share. Times the lengths, shares sum to 1 for ``dapo`` and ``bnpo``, and for ``grpo``
        where no output is empty.
    """
    outputs = size.outputs or 1.0
    match objective.loss_type:
        case "grpo":
            return part / (outputs * max(1, length))
        case "bnpo" | "dapo":
            return 1.0 / max(1, size.tokens)
        case "dr_grpo":
            return 1.0 / (outputs * objective.max_completion_tokens)
