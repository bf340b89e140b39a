"""``TokenBudget``: how many tokens may be spent in any hour."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

HOUR = 3600.0


class TokenBudget:
    """Counts what was spent in the hour that ends now.

    What an answer costs is known afterwards, so the budget can be exceeded by what one answer
    costs. It belongs to one process.

    Args:
        per_hour: Most tokens in any hour; None for no bound.
        clock: Seconds of a clock that never goes backwards.
    """

    def __init__(
        self, per_hour: int | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_hour = per_hour
        self._clock = clock
        self._spent: deque[tuple[float, int]] = deque()
        self._sum = 0

    @property
    def spent(self) -> int:
        """Tokens spent in the last hour."""
        since = self._clock() - HOUR
        while self._spent and self._spent[0][0] <= since:
            self._sum -= self._spent.popleft()[1]
        return self._sum

    @property
    def has_room(self) -> bool:
        """Whether something more may be spent."""
        return self.per_hour is None or self.spent < self.per_hour

    def spend(self, tokens: int) -> None:
        """Count tokens as spent now."""
        if self.per_hour is not None:
            self._spent.append((self._clock(), tokens))
            self._sum += tokens
