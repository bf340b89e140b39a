"""How many pairs the shadow gate needs: its chances, worked out exactly and not by simulation."""

from __future__ import annotations

import math

from agentkit.errors import UsageError
from agentkit.evolution.gates.e_process import log_e_value


def wins_needed(pairs: int, *, level: float = 0.05, least: int = 1) -> tuple[int | None, ...]:
    """How many wins among the first n pairs that differ reach the level, for n from 1 on.

    Args:
        pairs: The largest n.
        level: How often a candidate that is not better may pass.
        least: Pairs before which the level does not count as reached.

    Returns:
        For each n the fewest wins; None where not even n are enough.

    Raises:
        UsageError: There are less than 0 pairs, or the level is not above 0 and at most 1.

    Example:
        >>> wins_needed(12)
        (None, None, None, None, None, None, 7, 8, 9, 10, 10, 11)
    """
    if pairs < 0 or not 0 < level <= 1:
        raise UsageError(f"{pairs} pairs at level {level}: counts are not negative, 0 < level <= 1")
    asked, wins = -math.log(level), 0
    needed: list[int | None] = []
    for count in range(1, pairs + 1):
        # One pair more never needs fewer wins, so the search goes on where it was.
        while wins <= count and log_e_value(wins, count - wins) < asked:
            wins += 1
        needed.append(wins if least <= count >= wins else None)
        wins = min(wins, count)
    return tuple(needed)


def chance_to_pass(
    win_share: float, pairs: int, *, level: float = 0.05, least: int = 1
) -> tuple[float, ...]:
    """How likely the e-process is to have reached the level by the n-th pair that differs.

    At a win share of 1/2 this is the error that the gate makes when it is asked after every single
    pair; with more it is the power. Worked out by following the distribution of the wins.

    Args:
        win_share: How often the candidate is the right one where the two differ.
        pairs: The largest n.
        level: How often a candidate that is not better may pass.
        least: Pairs before which the level does not count as reached.

    Returns:
        The probability for each n from 1 on.

    Raises:
        UsageError: A share or the level is out of range.

    Example:
        >>> chances = chance_to_pass(0.8, 60)
        >>> round(chances[19], 2), round(chances[39], 2), round(chance_to_pass(0.5, 400)[-1], 3)
        (0.69, 0.94, 0.034)
    """
    if not 0 <= win_share <= 1:
        raise UsageError(f"a share of wins lies between 0 and 1, got {win_share}")
    going = {0: 1.0}  # wins so far, of those that have not reached the level
    passed = 0.0
    chances: list[float] = []
    for needed in wins_needed(pairs, level=level, least=least):
        after: dict[int, float] = {}
        for wins, chance in going.items():
            after[wins] = after.get(wins, 0.0) + chance * (1 - win_share)
            after[wins + 1] = after.get(wins + 1, 0.0) + chance * win_share
        reached = [wins for wins in after if needed is not None and wins >= needed]
        passed += math.fsum(after.pop(wins) for wins in reached)
        going = after
        chances.append(min(1.0, passed))
    return tuple(chances)
