"""Asking again where a group teaches nothing: dynamic sampling as in DAPO (Yu et al. 2025, Eq. 11).

A group whose attempts are all worth the same has no advantages. DAPO leaves it out and samples on
until the batch is full of groups with a spread. Here that is bounded: tasks that are always or
never solved would be asked for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkit_training.engines.base import ResamplingSource, Share
from agentkit_training.engines.rows import groups
from agentkit_training.rollout.samples import Rollout


def has_spread(group: Sequence[Rollout]) -> bool:
    """Whether the sound attempts of a group differ in reward."""
    return len({one.reward for one in group if not one.fault}) > 1


def filled_up(
    rollouts: Sequence[Rollout],
    source: ResamplingSource,
    *,
    step: int,
    share: Share,
    bound: int,
) -> tuple[list[Rollout], int]:
    """The groups with a spread, and further ones in place of the rest.

    Args:
        rollouts: Of the step, as the source first gave them.
        source: To ask for more.
        step: The step.
        share: Of this process.
        bound: Most times to ask.

    Returns:
        No more groups than there were, all with a spread; the rollouts as they came where no group
        has any. And how often was asked.
    """
    wanted = len(groups(rollouts))
    found = [group for group in groups(rollouts) if has_spread(group)]
    asked = 0
    while len(found) < wanted and asked < bound:
        asked += 1
        more = source.resampled(step, share, asked)
        found += [group for group in groups(more) if has_spread(group)]
    if not found:
        return list(rollouts), asked
    return [one for group in found[:wanted] for one in group], asked
