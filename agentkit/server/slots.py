"""``Slots``: how much is done at a time, for all clients and for each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from agentkit.server.exchange import Exchange
from agentkit.server.limits import ServerLimits
from agentkit.server.problem import Problem

_BODIES_PER_PLACE = 4


class Slots:
    """Counts what is under way, so that one client leaves room for the others.

    Args:
        most: For all together.
        each: For one client.
        seconds: The longest that one is held, for ``Retry-After``.
        clock: Seconds that only ever grow.

    Example:
        >>> slots = Slots(most=3, each=2, seconds=60)
        >>> [slots.take(who) is not None for who in ("ann", "ann", "ann", "bob", "eve")]
        [True, True, False, True, False]
    """

    def __init__(
        self,
        *,
        most: int,
        each: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._each, self._seconds = most, each, seconds
        self._clock = clock
        self._taken: dict[str, list[float]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._taken.values()))

    def take(self, who: str) -> float | None:
        """Take one for a client, which ``free`` gives back; None where it has to wait."""
        own = self._taken.get(who, ())
        if len(self) >= self._most or len(own) >= self._each:
            return None
        began = self._clock()
        self._taken[who] = [*own, began]
        return began

    def free(self, who: str, taken: float) -> None:
        """Give one back."""
        self._taken[who].remove(taken)
        if not self._taken[who]:
            del self._taken[who]

    def refusal(self, who: str) -> Problem:
        """What a client reads that found none.

        ``Retry-After`` is as long as the oldest one is held already, for how long requests take is
        not known beforehand, and no longer than it can be held.
        """
        own = self._taken.get(who, ())
        is_full = len(self) >= self._most
        held = self._clock() - min(min(one) for one in (self._taken.values() if is_full else [own]))
        wait = max(1, math.ceil(min(held, self._seconds - held)))
        if is_full:
            message = f"{self._most} requests are being answered already; wait {wait} s"
            return Problem(status=503, message=message, code="overloaded", retry_after=wait)
        message = f"{len(own)} requests of this client are being answered already; wait {wait} s"
        return Problem(status=429, message=message, code="too_many_at_once", retry_after=wait)


class Bodies:
    """Reads the bodies of requests. One that does not come holds up its own client alone."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._slots = Slots(
            most=limits.max_concurrent * _BODIES_PER_PLACE,
            each=limits.share * _BODIES_PER_PLACE,
            seconds=limits.body_seconds,
        )

    async def of(self, exchange: Exchange, *, most: int | None = None) -> bytes | Problem | None:
        """The body; None when the client left before it was complete."""
        taken = self._slots.take(exchange.who)
        if taken is None:
            return self._slots.refusal(exchange.who)
        try:
            return await exchange.body(
                most=min(most or self._limits.max_body_bytes, self._limits.max_body_bytes),
                seconds=self._limits.body_seconds,
            )
        finally:
            self._slots.free(exchange.who, taken)
