"""The statistics of the gates: e-processes, betting, e-LOND, exact intervals.

All are closed forms or short sums; scipy is the oracle in tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import add

from agentkit.errors import UsageError

# --- How far an e-process got: what all anytime-valid gates have in common -----------------------
# An e-process is a non-negative sequence that begins at 1 and whose expectation is at most 1 under
# the null hypothesis at whatever time one stops, chosen in whatever way (Ramdas, Grünwald, Vovk
# and
# Shafer 2023, *Statistical Science* 38(4), 576-601). By Ville's inequality (1939) it ever reaches
# ``1 / level`` with probability at most ``level``. One may therefore look after every episode, and
# a
# decision that was once reached stands.


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """Where an e-process stands.

    Attributes:
        steps: Observations that it has seen.
        log_e: Natural logarithm of the e-value now.
        highest: Of the largest e-value so far, the beginning included; 0 or more.
        reached: The step at which the level was first reached; None if it was not.
    """

    steps: int = 0
    log_e: float = 0.0
    highest: float = 0.0
    reached: int | None = None

    @property
    def p_value(self) -> float:
        """The anytime-valid p-value: 1 over the largest e-value so far."""
        return math.exp(-self.highest)


def evidence(path: Iterable[float], *, level: float, least: int = 1) -> Evidence:
    """Follow an e-process to its end.

    Args:
        path: Logarithm of the e-value after each observation.
        level: How often the null hypothesis may be rejected although it is true.
        least: Observations before which the level does not count as reached.

    Raises:
        UsageError: The level is not above 0 and at most 1.

    Example:
        >>> found = evidence([0.4, 3.2, 1.1], level=0.05)
        >>> found.reached, found.log_e, round(found.p_value, 3)
        (2, 1.1, 0.041)
    """
    if not 0 < level <= 1:
        raise UsageError(f"a level lies above 0 and is at most 1, got {level}")
    asked = -math.log(level)
    steps, log_e, highest = 0, 0.0, 0.0
    reached: int | None = None
    for log_e in path:
        steps += 1
        highest = max(highest, log_e)
        if reached is None and steps >= least and log_e >= asked:
            reached = steps
    return Evidence(steps=steps, log_e=log_e, highest=highest, reached=reached)


# --- The e-process on pairs that differ: is the candidate right more often than the control is ----
# A pair on which both are right, or both wrong, says nothing about which is better. Of those that
# differ, a *win* is one on which only the candidate is right. Null hypothesis: given all that came
# before, the next pair that differs is a win with probability 1/2 or less.
#
# *Derivation.* Bet on wins at the odds of a coin with probability q > 1/2: a win multiplies the
# money
# by 2q, a loss by 2(1 - q). Under the null hypothesis, with p <= 1/2, the expected factor is
# p 2q + (1 - p) 2(1 - q) <= 1, so the money is a non-negative supermartingale (a test martingale
# at
# p = 1/2). The best q is not known, so the money is spread evenly over all q between 1/2 and 1
# (the
# method of mixtures: Robbins 1970, *Annals of Mathematical Statistics* 41(5), 1397-1409; the
# beta-binomial mixture of Howard, Ramdas, McAuliffe and Sekhon 2021, *Annals of Statistics* 49(2),
# 1055-1080, here with a flat prior cut off at 1/2, which makes it one-sided). With k wins in n
# pairs
#
#     E(n, k) = 2 \int_{1/2}^1 (2q)^k (2 - 2q)^{n-k} dq
#             = \sum_{j=0}^{k} C(n + 1, j) / ((n + 1) C(n, k)),
#
# because the incomplete beta integral with whole parameters is a binomial sum. A mixture of
# supermartingales is one, so E is an e-process; see ``evidence`` for what follows.
#
# The sum S(n, k) obeys S(n + 1, k + 1) = 2 S(n, k) + C(n + 1, k + 1) after a win and S(n + 1, k) =
# 2 S(n, k) - C(n + 1, k) after a loss (Pascal's rule). Followed in whole numbers, it is rounded
# only
# when the logarithm is taken; in floating point the difference would lose all its digits.


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


# --- An e-process for a bounded mean, by betting: for what is not a coin -------------------------
# Null hypothesis: given all that came before, the next value, between ``low`` and ``high``, has a
# mean of at most ``bound``. A gambler with money 1 stakes a fixed part on each value being larger:
# the money is multiplied by 1 + stake (value - bound), never negative when stake <= 1 / (bound -
# low)
# and not expected to grow under the null hypothesis. So the money is a non-negative
# supermartingale
# (Waudby-Smith and Ramdas 2024, *Journal of the Royal Statistical Society* B 86(1), 1-27, section
# 4).
# The best stake is about the excess of the mean over the variance and is not known, so the money
# is
# divided evenly among several gamblers. The paper lets the stake follow what was seen; with fixed
# stakes the money depends on the values and not on their order, and can be checked by hand.


STAKES = (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
"""What the gamblers stake, as parts of the largest stake that cannot be ruinous.

Neighbours differ by a factor of two, so one of them earns within 1/9 of what the best stake would
(growth is about a parabola in the stake); seven cost at most log 7 = 1.9 in the logarithm.
"""


_NARROWEST = 1e-9
"""Nearer to the lowest value a bound is not told apart from it."""


def log_money_path(
    values: Iterable[float], *, bound: float, low: float = -1.0, high: float = 1.0
) -> Iterator[float]:
    """Natural logarithm of the e-process after each value.

    Args:
        values: In the order of time, each from ``low`` to ``high``.
        bound: The largest mean that the null hypothesis allows; from ``low`` to below ``high``.
        low: The smallest value that can occur.
        high: The largest.

    Raises:
        UsageError: The bound or a value is out of range, or not a number.

    Example:
        >>> money = [math.exp(one) for one in log_money_path([1, 0, 1, 1], bound=0)]
        >>> [round(one, 3) for one in money]
        [1.227, 1.227, 1.575, 2.13]
    """
    if not low + _NARROWEST <= bound < high:
        raise UsageError(f"the bound must lie between {low} and {high}, got {bound}")
    stakes = [part / (bound - low) for part in STAKES]
    logs = [0.0] * len(stakes)
    gains: dict[float, list[float]] = {}  # most streams repeat a few values
    for value in values:
        if value not in gains:
            if not low <= value <= high:
                raise UsageError(f"a value must lie between {low} and {high}, got {value}")
            gains[value] = [math.log1p(stake * (value - bound)) for stake in stakes]
        logs = list(map(add, logs, gains[value]))
        most = max(logs)
        yield most + math.log(math.fsum(math.exp(log - most) for log in logs) / len(logs))


# --- e-LOND: how many of many promoted candidates are useless, kept in bounds --------------------
# A gate at level .05 lets one useless candidate in twenty pass; of 160 useless ones, eight. e-LOND
# (Xu and Ramdas 2024, "Online multiple testing with e-values", AISTATS, PMLR 238) gives the t-th
# experiment the level
#
#     alpha_t = alpha gamma_t (1 + promotions so far),    \sum_t gamma_t <= 1,
#
# and promotes when its e-value reaches 1 / alpha_t. The expected share of useless ones among all
# promoted (the false discovery rate) is then at most alpha, however the experiments depend on each
# other. *Proof.* Let R be all promotions and R_t those before experiment t. If t is promoted, then
# |R| >= R_t + 1, so a useless t adds at most E[1{E_t >= 1 / alpha_t} / (R_t + 1)] <= E[E_t alpha_t
# /
# (R_t + 1)] = alpha gamma_t E[E_t] <= alpha gamma_t. The sum over t is at most alpha.
#
# We differ in one thing: experiments overlap in time. An experiment gets its number and its level
# when it *opens*, and keeps them. ``promotions so far`` counts what was promoted by then, which is
# no
# more than what was when it is decided, so the proof holds word for word; and a fixed level makes
# the
# first time at which the e-process reaches it a stopping time, so that E[E_t] <= 1 holds there.
#
# The paper leaves gamma open. Ours falls as t^-1.3: slowly, so that late experiments keep a level
# that useful earlier ones can still raise, and summable, so that there is no last experiment.


DECAY = 1.3
"""The power with which the levels fall, before promotions raise them."""

_ZETA = 3.93194921181
"""The sum of t^-1.3 over all t, Riemann's zeta function, rounded up."""


def gamma(number: int) -> float:
    """The part of alpha that belongs to an experiment; all parts together are at most 1.

    Args:
        number: The experiment's place in the order of opening, from 1.

    Raises:
        UsageError: The number is less than 1.
    """
    if number < 1:
        raise UsageError(f"experiments are numbered from 1, got {number}")
    share: float = number**-DECAY / _ZETA
    return share


@dataclass(frozen=True, kw_only=True, slots=True)
class Elond:
    """The state of e-LOND, folded from the events of the library.

    Attributes:
        opened: Experiments that were opened.
        promoted: Those whose e-value reached their level. One that is rolled back later still
            counts: it was a discovery, and taking it away would change levels already given.

    Example:
        >>> state = Elond()
        >>> level = state.level(0.05)
        >>> state = Elond(opened=1, promoted=1)
        >>> round(level, 4), round(state.level(0.05), 4)
        (0.0127, 0.0103)
    """

    opened: int = 0
    promoted: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.promoted <= self.opened:
            raise UsageError(f"{self.promoted} of {self.opened} experiments cannot be promoted")

    def level(self, alpha: float) -> float:
        """The level of the experiment that is opened next; it keeps it to its end.

        Args:
            alpha: The false discovery rate that is tolerated.

        Raises:
            UsageError: It is not between 0 and 1.
        """
        if not 0 < alpha < 1:
            raise UsageError(f"alpha must lie between 0 and 1, got {alpha}")
        return min(1.0, alpha * gamma(self.opened + 1) * (self.promoted + 1))
