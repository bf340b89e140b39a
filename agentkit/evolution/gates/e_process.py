r"""The e-process on pairs that differ: is the candidate right more often than the control is.

A pair on which both are right, or both wrong, says nothing about which is better. Of those that
differ, a *win* is one on which only the candidate is right. Null hypothesis: given all that came
before, the next pair that differs is a win with probability 1/2 or less.

*Derivation.* Bet on wins at the odds of a coin with probability q > 1/2: a win multiplies the money
by 2q, a loss by 2(1 - q). Under the null hypothesis, with p <= 1/2, the expected factor is
p 2q + (1 - p) 2(1 - q) <= 1, so the money is a non-negative supermartingale (a test martingale at
p = 1/2). The best q is not known, so the money is spread evenly over all q between 1/2 and 1 (the
method of mixtures: Robbins 1970, *Annals of Mathematical Statistics* 41(5), 1397-1409; the
beta-binomial mixture of Howard, Ramdas, McAuliffe and Sekhon 2021, *Annals of Statistics* 49(2),
1055-1080, here with a flat prior cut off at 1/2, which makes it one-sided). With k wins in n pairs

    E(n, k) = 2 \int_{1/2}^1 (2q)^k (2 - 2q)^{n-k} dq
            = \sum_{j=0}^{k} C(n + 1, j) / ((n + 1) C(n, k)),

because the incomplete beta integral with whole parameters is a binomial sum. A mixture of
supermartingales is one, so E is an e-process; see ``evidence`` for what follows.

The sum S(n, k) obeys S(n + 1, k + 1) = 2 S(n, k) + C(n + 1, k + 1) after a win and S(n + 1, k) =
2 S(n, k) - C(n + 1, k) after a loss (Pascal's rule). Followed in whole numbers, it is rounded only
when the logarithm is taken; in floating point the difference would lose all its digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from agentkit.errors import UsageError


def log_e_value(wins: int, losses: int) -> float:
    """Natural logarithm of E after so many pairs that differ, in whatever order they came.

    The mirrored question, whether the candidate is worse, has the two counts exchanged.

    Args:
        wins: Pairs on which only the candidate was right.
        losses: Pairs on which only the control was right.

    Raises:
        UsageError: A count is negative.

    Example:
        >>> round(math.exp(log_e_value(9, 1)), 1), round(math.exp(log_e_value(5, 5)), 2)
        (18.5, 0.37)
    """
    if min(wins, losses) < 0:
        raise UsageError(f"counts of pairs can not be negative: {wins}, {losses}")
    # The sum from its last term down, as a multiple of that term: no two terms differ in sign.
    total, term, shift = 1.0, 1.0, 0.0
    for place in range(wins, 0, -1):
        term *= place / (wins + losses + 2 - place)
        total += term
        if term < total * 1e-18:
            break
        if total > 1e200:
            total, term, shift = total / 1e200, term / 1e200, shift + math.log(1e200)
    return shift + math.log(total) - math.log(losses + 1)


def log_e_path(outcomes: Iterable[bool]) -> Iterator[float]:
    """Natural logarithm of E after each pair that differs.

    Args:
        outcomes: For each such pair in the order of time, whether the candidate was the right one.

    Example:
        >>> [round(math.exp(one), 3) for one in log_e_path([True, True, False])]
        [1.5, 2.333, 0.917]
    """
    pairs, wins, total, ways = 0, 0, 1, 1  # `total` is S(n, k), `ways` is C(n, k)
    for won in outcomes:
        if won:
            wins += 1
            more = ways * (pairs + 1) // wins
            total = 2 * total + more
        else:
            more = ways * (pairs + 1) // (pairs + 1 - wins)
            total = 2 * total - more
        pairs, ways = pairs + 1, more
        yield math.log(total) - math.log((pairs + 1) * ways)
