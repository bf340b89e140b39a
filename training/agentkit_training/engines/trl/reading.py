"""The reference, read for TRL: each prompt once for all answers to it, as the lean engine reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentkit_training.engines.packing import packed_logprobs, packs
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import TokenSequence

if TYPE_CHECKING:
    import torch


def padded_logprobs(
    policy: Policy,
    sequences: Sequence[TokenSequence],
    *,
    shape: tuple[int, int],
    temperature: float,
    max_tokens: int,
) -> torch.Tensor:
    """The log-probability of every completion token, one row for each sequence.

    Args:
        policy: What reads; no gradient is kept.
        sequences: What to read.
        shape: Rows and columns of the answer; what no token fills is 0.
        temperature: That the tokens were sampled at.
        max_tokens: Longest input that is read at once.

    Returns:
        float32, of shape ``shape``.
    """
    import torch

    found = torch.zeros(shape, device=policy.device)
    with torch.no_grad():
        for places, pack in packs(sequences, max_tokens=max_tokens):
            read = packed_logprobs(policy, pack, temperature=temperature)
            lengths = [len(one) for one in pack.completions]
            for place, part in zip(places, torch.split(read, lengths), strict=True):
                found[place, : len(part)] = part
    return found
