"""An e-process for a bounded mean, by betting: for what is not a coin.

Null hypothesis: given all that came before, the next value, between ``low`` and ``high``, has a
mean of at most ``bound``. A gambler with money 1 stakes a fixed part on each value being larger:
the money is multiplied by 1 + stake (value - bound), never negative when stake <= 1 / (bound - low)
and not expected to grow under the null hypothesis. So the money is a non-negative supermartingale
(Waudby-Smith and Ramdas 2024, *Journal of the Royal Statistical Society* B 86(1), 1-27, section 4).
The best stake is about the excess of the mean over the variance and is not known, so the money is
divided evenly among several gamblers. The paper lets the stake follow what was seen; with fixed
stakes the money depends on the values and not on their order, and can be checked by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from operator import add

from agentkit.errors import UsageError

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
