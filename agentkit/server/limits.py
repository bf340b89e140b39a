"""Limits of one server: bounds, rates and slots for all clients and for each."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from agentkit.errors import UsageError
from agentkit.server.keys import Keys
from agentkit.server.middleware import Exchange, RequestError


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerLimits:
    """Bounds on requests. What a run may spend is the agent's own ``Limits``.

    Attributes:
        max_body_bytes: Largest body; a larger one is answered with 413.
        max_messages: Most messages in one request, and most tool calls in these.
        max_concurrent: Most runs at once; further requests are answered with 503.
        max_concurrent_per_key: Most of them for one key, or without keys for one client's address;
            further requests are answered with 429. None for a quarter of ``max_concurrent``
            where there are several keys, and for all of it otherwise.
        requests_per_minute: Per key; further requests are answered with 429. Ten seconds' worth
            may come at once. None for no bound.
        request_seconds: Longest run; it is cut then and answered with 504.
        body_seconds: Longest wait for the body of a request; 408 afterwards.
        send_seconds: How long a client may read nothing of what is sent to it; it counts as gone
            then.
        drain_seconds: How long runs may continue after the server was asked to stop; those that are
            not done by then are cut and answered with 503.
        heartbeat_seconds: A stream that has nothing to say sends a comment this often, so that
            proxies keep it open.
    """

    max_body_bytes: int = 2_000_000
    max_messages: int = 500
    max_concurrent: int = 64
    max_concurrent_per_key: int | None = None
    requests_per_minute: float | None = None
    request_seconds: float = 300.0
    body_seconds: float = 15.0
    send_seconds: float = 30.0
    drain_seconds: float = 30.0
    heartbeat_seconds: float = 15.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            can_be_nothing = one.name == "drain_seconds"
            if value is not None and not (value > 0 or (can_be_nothing and value == 0)):
                raise UsageError(f"ServerLimits.{one.name} is {value}; use a number above 0")

    def share(self, keys: Keys | None) -> int:
        """The number of concurrent runs of one client: with a single key, or none, all of them.

        Keys may come and go while the server runs. Without keys, clients are addresses, and behind
        a proxy all of them are one.
        """
        if self.max_concurrent_per_key is not None:
            return self.max_concurrent_per_key
        has_several = keys is not None and len(keys.names) > 1
        return max(1, self.max_concurrent // 4) if has_several else self.max_concurrent


_BURST_SECONDS = 10.0


class RateLimiter:
    """A token bucket for each key (the generic cell rate algorithm of ATM Forum TM 4.0).

    For each key one number is kept: the time at which its bucket would be full again.

    Args:
        requests_per_minute: The rate at which a bucket fills; None never refuses.
        clock: Seconds that only ever grow.

    Example:
        >>> limiter = RateLimiter(6, clock=lambda: 0.0)
        >>> limiter.take("ann"), limiter.take("bob")
        (None, None)
    """

    def __init__(
        self, requests_per_minute: float | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = requests_per_minute
        self._clock = clock
        self._full_at: dict[str, float] = {}

    def take(self, key: str) -> None:
        """Take one request of ``key``; one that has to wait does not count.

        Raises:
            RequestError: It has to wait.
        """
        if self._rate is None:
            return
        now, interval = self._clock(), 60.0 / self._rate
        full_at = max(self._full_at.get(key, now), now) + interval
        too_early = full_at - now - max(_BURST_SECONDS, interval)
        if too_early > 0:
            wait = math.ceil(too_early)
            raise RequestError(
                status=429,
                message=f"more than {self._rate:g} requests a minute with this key; wait {wait} s",
                code="rate_limit_exceeded",
                retry_after=wait,
            )
        self._full_at[key] = full_at


_BODIES_PER_PLACE = 4


class Slots:
    """Counts what is under way, so that one client leaves room for the others.

    Args:
        most: For all together.
        each: Returns the limit of one client; called each time, since keys may come and go.
    """

    def __init__(self, *, most: int, each: Callable[[], int]) -> None:
        self._most, self._each = most, each
        self._taken: Counter[str] = Counter()

    @contextmanager
    def held(self, who: str) -> Iterator[None]:
        """A client holds one inside.

        Raises:
            RequestError: The client has to wait.
        """
        is_full, own = self._taken.total() >= self._most, self._taken[who]
        if is_full or own >= self._each():
            count, whose = (self._most, "") if is_full else (own, " of this client")
            raise RequestError(
                status=503 if is_full else 429,
                message=f"{count} requests{whose} are being answered already; try again soon",
                code="overloaded" if is_full else "too_many_at_once",
                retry_after=1,
            )
        self._taken[who] += 1
        try:
            yield
        finally:
            self._taken[who] -= 1
            self._taken += Counter()  # forgets clients that hold none


class Bodies:
    """Reads the bodies of requests. One that does not come holds up its own client alone."""

    def __init__(self, limits: ServerLimits, keys: Keys | None) -> None:
        self._limits = limits
        self._slots = Slots(
            most=limits.max_concurrent * _BODIES_PER_PLACE,
            each=lambda: limits.share(keys) * _BODIES_PER_PLACE,
        )

    async def of(self, exchange: Exchange, *, most: int | None = None) -> bytes:
        """The body; see ``Exchange.body``."""
        bound = self._limits.max_body_bytes
        with self._slots.held(exchange.who):
            return await exchange.body(
                most=min(most or bound, bound), seconds=self._limits.body_seconds
            )
