"""How far an e-process got: what all anytime-valid gates have in common.

An e-process is a non-negative sequence that begins at 1 and whose expectation is at most 1 under
the null hypothesis at whatever time one stops, chosen in whatever way (Ramdas, Grünwald, Vovk and
Shafer 2023, *Statistical Science* 38(4), 576-601). By Ville's inequality (1939) it ever reaches
``1 / level`` with probability at most ``level``. One may therefore look after every episode, and a
decision that was once reached stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from agentkit.errors import UsageError


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
