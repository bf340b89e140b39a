"""What an engine wants to know of each token: its log-probability, and the entropy where it stood.

``read_sequences`` is the one way in: it reads many sequences in pieces that fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import TokenSequence

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


def read_sequences(
    policy: Policy,
    sequences: Sequence[TokenSequence],
    visit: Visit,
    *,
    temperature: float = 1.0,
    limits: Limits = Limits(),
) -> int:
    """Read sequences piece by piece, each distinct prompt once, and go back through every loss.

    Where gradients are on, the gradient of the losses that ``visit`` gives is added to the policy's
    parameters, piece by piece, so that memory is bounded by a piece and the prompts before it.

    A model with gradient checkpointing keeps no cache while it learns; its sequences are packed
    behind their prompt instead, see ``packing``.

    Args:
        policy: The model.
        sequences: What to read. Those with an empty completion are passed over.
        visit: Told of every other sequence once, some at a time.
        temperature: That the tokens were sampled at.
        limits: How much to read at once.

    Returns:
        Tokens that went through the model, padding included.
    """
    from agentkit_training.engines.behind import read_behind_prompts
    from agentkit_training.engines.packing import read_packed

    model = policy.model  # a reference's need not tell of either
    is_packed = getattr(model, "training", False) and _computes_again(model)
    read = read_packed if is_packed else read_behind_prompts
    return read(policy, sequences, visit, temperature=temperature, limits=limits)


def _computes_again(model: Any) -> bool:
    """Whether activations are computed again, under the name that this transformers has for it."""
    for name in ("is_activation_checkpointing", "is_gradient_checkpointing"):
        if hasattr(type(model), name):
            return bool(getattr(model, name))
    return False


def token_logprobs(
    policy: Policy,
    sequences: Sequence[TokenSequence],
    *,
    temperature: float = 1.0,
    limits: Limits = Limits(),
) -> list[torch.Tensor]:
    """The log-probabilities of each sequence's completion, without a gradient.

    Returns:
        A float32 tensor for each sequence, as long as its completion, on the policy's device.
    """
    import torch

    found = [torch.zeros(0, device=policy.device)] * len(sequences)

    def keep(places: Sequence[int], scores: TokenScores) -> None:
        sizes = [len(sequences[place].completion) for place in places]
        for place, part in zip(places, torch.split(scores.logprobs, sizes), strict=True):
            found[place] = part

    with torch.no_grad():
        read_sequences(policy, sequences, keep, temperature=temperature, limits=limits)
    return found
