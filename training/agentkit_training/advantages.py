"""How much better each rollout was than its group (ToolDNA, section 3.1; SEAL, Eq. 12)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

STABILITY = 1e-4
"""Added to the deviation, as TRL does, so that near-equal rewards give no huge advantages."""


def group_advantages(rewards: Sequence[float], *, scaled: bool = True) -> list[float]:
    """A_i = (r_i - mean) / (std + 1e-4) over one group of rollouts of the same task.

    Args:
        rewards: One for each rollout of the group.
        scaled: Whether to divide by the sample standard deviation; Dr. GRPO does not.

    Returns:
        The advantages; all 0 for equal rewards and for a group of one.

    Example:
        >>> [round(one, 3) for one in group_advantages([1.0, 0.0])]
        [0.707, -0.707]
        >>> group_advantages([1.0, 1.0])
        [0.0, 0.0]
    """
    if len(rewards) < 2 or min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    mean = fmean(rewards)
    spread = stdev(rewards) + STABILITY if scaled else 1.0
    return [(reward - mean) / spread for reward in rewards]


def weighted(advantages: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Each advantage times its diagnostic weight (SEAL, Eq. 12); positive weights keep the sign.

    Raises:
        ValueError: A weight is not positive, or there are not as many as advantages.
    """
    if any(weight <= 0 for weight in weights):
        raise ValueError(f"a weight is {min(weights)}; only positive ones keep the sign")
    return [one * weight for one, weight in zip(advantages, weights, strict=True)]
