"""The statistics of the gates: e-processes, betting, e-LOND, exact intervals.

All are closed forms or short sums; scipy is the oracle in tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import add
from statistics import fmean

from agentkit.errors import UsageError
from agentkit.metrics.intervals import Interval

# --- Where a claim that holds up to some number ceases to ----------------------------------------


_HALVINGS = 80
"""Of an interval, until its ends are as near as floating point tells apart."""


def crossing(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """The two numbers, as near to each other as can be, between which a claim ceases to hold.

    Args:
        holds: The claim; true below some number and false above it.
        low: Where it holds.
        high: Where it does not.

    Example:
        >>> low, high = crossing(lambda number: number * number < 2, 0.0, 2.0)
        >>> round(low, 9), round(high, 9)
        (1.414213562, 1.414213562)
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
        if high - low <= high * 1e-15:
            break
    return low, high


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


# --- The e-process on pairs that differ: is the candidate right more often than the control i ----
# The e-process on pairs that differ: is the candidate right more often than the control is.
#
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
"""What the gamblers stake, as parts of the largest stake that can not be ruinous.

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
        >>> state = state.open().promote()
        >>> round(level, 4), round(state.level(0.05), 4)
        (0.0127, 0.0103)
    """

    opened: int = 0
    promoted: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.promoted <= self.opened:
            raise UsageError(f"{self.promoted} of {self.opened} experiments can not be promoted")

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

    def open(self) -> Elond:
        """The state after an experiment was opened."""
        return replace(self, opened=self.opened + 1)

    def promote(self) -> Elond:
        """The state after an open experiment reached its level."""
        return replace(self, promoted=self.promoted + 1)


# --- Bounds on a share that hold at every number of cases: for a single look at a fixed numbe ----
# Bounds on a share that hold at every number of cases: for a single look at a fixed number.


def exact_interval(found: int, of: int, *, alpha: float) -> Interval:
    """The interval of Clopper and Pearson (1934, *Biometrika* 26(4), 404-413) for a share.

    Its upper end is the largest share at which so few would be found with probability ``alpha`` or
    more, and its lower end the smallest at which so many would. So each end alone is wrong with
    probability ``alpha`` at most, whatever the share and the number of cases. Wilson's interval has
    that only on the average: at a share of .02 its upper end is wrong in 6.8% of samples of 133 and
    its lower end in 14.1% of samples of 33, where 5% was asked for.

    Args:
        found: How many of them.
        of: Independent cases; 0 for none, where nothing is known.
        alpha: How often each end may be wrong, above 0 and below .5.

    Raises:
        UsageError: There can not be so many, or alpha is out of range.

    Example:
        >>> share = exact_interval(0, 149, alpha=0.05)
        >>> share.low, round(share.high, 4)
        (0.0, 0.0199)
    """
    if not 0 <= found <= of:
        raise UsageError(f"{found} of {of} can not have been found")
    if not 0 < alpha < 0.5:
        raise UsageError(f"alpha must lie between 0 and .5, got {alpha}")
    value = found / of if of else 0.0
    low, high = 0.0, 1.0
    if found:
        low, _ = crossing(lambda p: 1 - chance_of_at_most(found - 1, of, p) < alpha, 0.0, 1.0)
    if found < of:
        high, _ = crossing(lambda p: chance_of_at_most(found, of, p) >= alpha, 0.0, 1.0)
    return Interval(value=value, low=low, high=high, level=1 - 2 * alpha)


def chance_of_at_most(most: int, of: int, share: float) -> float:
    """The binomial probability of so many or fewer.

    Args:
        most: The largest number that counts; less than 0 for none.
        of: Independent cases.
        share: Probability of each, from 0 to 1.
    """
    if most < 0 or share >= 1:
        return float(most >= of)
    if most >= of or share <= 0:
        return 1.0
    if most > of * share:  # the other tail is the shorter one, and falls from its first term on
        return max(0.0, 1 - chance_of_at_most(of - most - 1, of, 1 - share))
    ways = math.lgamma(of + 1) - math.lgamma(most + 1) - math.lgamma(of - most + 1)
    term = total = math.exp(ways + most * math.log(share) + (of - most) * math.log1p(-share))
    for number in range(most, 0, -1):
        term *= number * (1 - share) / ((of - number + 1) * share)
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, total)


# --- Student's interval for a mean, which knows that the spread was estimated too ----------------


def student_spread(values: Sequence[float], *, level: float) -> float:
    """Half the length of Student's interval for the mean (Student 1908, *Biometrika* 6(1), 1-25).

    Args:
        values: Independent of each other.
        level: The level of confidence, between 0 and 1.

    Returns:
        The half-length; infinite for less than two values.

    Example:
        >>> round(student_spread([3.0, 1.0, 2.0], level=0.95), 3)
        2.484
    """
    count = len(values)
    if count < 2:
        return math.inf
    mean = fmean(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return student_quantile((1 + level) / 2, count - 1) * math.sqrt(variance / count)


def student_quantile(share: float, freedom: int) -> float:
    """Below which a variable with Student's distribution lies so often.

    Args:
        share: From .5 to below 1.
        freedom: Degrees of freedom, 1 or more.

    Raises:
        UsageError: An argument is out of range.

    Example:
        >>> round(student_quantile(0.975, 29), 4)
        2.0452
    """
    if not 0.5 <= share < 1 or freedom < 1:
        raise UsageError(f"no quantile {share} of Student's distribution with {freedom} degrees")
    low, high = 0.0, 1.0
    while _within(high, freedom) < 2 * share - 1:
        low, high = high, 2 * high
    return crossing(lambda distance: _within(distance, freedom) < 2 * share - 1, low, high)[1]


def _within(distance: float, freedom: int) -> float:
    """Probability of a distance from 0 of at most so much.

    A finite sum for whole degrees of freedom (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4).
    """
    angle = math.atan(distance / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


# --- How many pairs the shadow gate needs: its chances, worked out exactly and not by simulat ----
# How many pairs the shadow gate needs: its chances, worked out exactly and not by simulation.


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
