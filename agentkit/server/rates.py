"""``RateLimiter``: how many requests each key may send in a minute."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

_BURST_SECONDS = 10.0


class RateLimiter:
    """A token bucket for each key (the generic cell rate algorithm of ATM Forum TM 4.0).

    For each key one number is kept: the time at which its bucket would be full again.

    Args:
        requests_per_minute: The rate at which a bucket fills; None never refuses.
        clock: Seconds that only ever grow.

    Example:
        >>> limiter = RateLimiter(6, clock=lambda: 0.0)
        >>> limiter.wait("ann"), limiter.wait("ann"), limiter.wait("bob")
        (0, 10, 0)
    """

    def __init__(
        self, requests_per_minute: float | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = None if requests_per_minute is None else 60.0 / requests_per_minute
        self._clock = clock
        self._full_at: dict[str, float] = {}

    def wait(self, key: str) -> int:
        """Take one request of ``key``: 0 if it may go on, else the seconds to wait.

        A request that has to wait does not count.
        """
        if self._interval is None:
            return 0
        now = self._clock()
        full_at = max(self._full_at.get(key, now), now) + self._interval
        too_early = full_at - now - max(_BURST_SECONDS, self._interval)
        if too_early > 0:
            return math.ceil(too_early)
        self._full_at[key] = full_at
        return 0
