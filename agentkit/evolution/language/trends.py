"""Whether edits get smaller from round to round, and whether texts come back to what they were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

Trend = Literal["shrinking", "growing", "no trend", "too few"]

FEWEST_EDITS = 4
"""With three, even edits that shrink each time come by chance in one of six orders."""

_LEVEL = 0.05
_EXACT = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Convergence:
    """How the size of edits went over the rounds.

    Attributes:
        sizes: Normalised edit distance of each round from the one before.
        tau: Kendall's rank correlation of size and round, -1 to 1; None for fewer than two rounds.
        p_shrinking: Chance that sizes in random order fall at least as clearly; None as for tau.
        p_growing: The same for rising.
        trend: ``shrinking`` or ``growing`` where that chance is at most 5%; ``too few`` below
            four rounds, which can not show it.
        returns: Rounds whose text had been there before an earlier round, which is oscillation.
    """

    sizes: tuple[float, ...]
    tau: float | None
    p_shrinking: float | None
    p_growing: float | None
    trend: Trend
    returns: int


def convergence(sizes: Sequence[float], texts: Sequence[str] = ()) -> Convergence:
    """Whether edits shrink (Mann-Kendall test) and texts oscillate.

    ToolDNA (section 4.4) says that "the magnitude of these updates decays across iterations" and
    that metadata converges "without oscillation", and gives no test. We take the rank test of Mann
    (Econometrica 13, 1945) and Kendall, which assumes no shape of the decay: exact for up to
    thirty rounds, the normal approximation with a correction of continuity above. It takes sizes
    for free of ties; ties make it careful rather than rash. Each direction is tested at 5% by
    itself, so that of texts without any trend one in ten is called one.

    Args:
        sizes: Size of each edit, in the order in which they were made.
        texts: The texts from the first on, one more than sizes; leave out where returns do not
            matter.

    Example:
        >>> convergence([0.5, 0.3, 0.2, 0.05]).trend, convergence([0.2, 0.1]).trend
        ('shrinking', 'too few')
        >>> convergence([0.5, 0.5], ["a", "b", "a"]).returns
        1
    """
    rises = sum((b > a) - (b < a) for a, b in combinations(sizes, 2))
    pairs = len(sizes) * (len(sizes) - 1) // 2
    shrinking = at_most(rises, len(sizes)) if pairs else None
    growing = at_most(-rises, len(sizes)) if pairs else None
    return Convergence(
        sizes=tuple(sizes),
        tau=rises / pairs if pairs else None,
        p_shrinking=shrinking,
        p_growing=growing,
        trend=_trend(len(sizes), shrinking, growing),
        returns=_returns(texts),
    )


def at_most(score: int, rounds: int) -> float:
    """Chance that Kendall's score of so many rounds in random order is at most ``score``.

    The score is the number of pairs of rounds of which the later is larger, less those of which it
    is smaller.
    """
    if rounds > _EXACT:
        spread = math.sqrt(rounds * (rounds - 1) * (2 * rounds + 5) / 18)
        return 0.5 * (1 + math.erf((score + 1) / spread / math.sqrt(2)))
    orders = [1]  # number of orders by pairs in falling order (Mahonian numbers)
    for length in range(2, rounds + 1):
        wider = [0] * (len(orders) + length - 1)
        for at, count in enumerate(orders):
            for shift in range(length):
                wider[at + shift] += count
        orders = wider
    pairs = rounds * (rounds - 1) // 2
    fewest_falling = -((score - pairs) // 2)  # score = pairs - 2 * falling
    return sum(orders[max(0, fewest_falling) :]) / math.factorial(rounds)


def _trend(rounds: int, shrinking: float | None, growing: float | None) -> Trend:
    if rounds < FEWEST_EDITS or shrinking is None or growing is None:
        return "too few"
    if shrinking <= _LEVEL:
        return "shrinking"
    return "growing" if growing <= _LEVEL else "no trend"


def _returns(texts: Sequence[str]) -> int:
    seen: set[str] = set()
    returns = 0
    for before, text in zip(["", *texts], texts, strict=False):
        returns += text in seen and text != before
        seen.add(text)
    return returns
