"""``Slots``: how much is done at a time, for all clients and for each."""

from __future__ import annotations

from collections import Counter


class Slots:
    """Counts what is under way, so that one client leaves room for the others.

    Args:
        most: For all together.
        each: For one client.

    Example:
        >>> slots = Slots(most=3, each=2)
        >>> [slots.take(who) for who in ("ann", "ann", "ann", "bob", "eve")]
        [True, True, False, True, False]
    """

    def __init__(self, *, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._taken: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._taken.total()

    def take(self, who: str) -> bool:
        """Take one for a client; False where there is none left for it."""
        if self._taken.total() >= self._most or self._taken[who] >= self._each:
            return False
        self._taken[who] += 1
        return True

    def free(self, who: str) -> None:
        """Give one back."""
        self._taken[who] -= 1
        if not self._taken[who]:
            del self._taken[who]
