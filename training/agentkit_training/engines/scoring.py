"""``read_sequences``: the one way to the scores of sequences, in pieces that fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.behind import read_behind_prompts
from agentkit_training.engines.packing import read_packed
from agentkit_training.engines.token_scores import Limits, TokenScores, Visit
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import TokenSequence

if TYPE_CHECKING:
    import torch


def read_sequences(
    policy: Policy,
    sequences: Sequence[TokenSequence],
    visit: Visit,
    *,
    temperature: float = 1.0,
    limits: Limits = Limits(),  # noqa: B008 - immutable
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
    limits: Limits = Limits(),  # noqa: B008 - immutable
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
