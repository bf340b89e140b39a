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
        max_messages: Most messages in one request.
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

    def check(self, key: str) -> None:
        """Take one request of ``key``.

        Raises:
            RequestError: It has to wait.
        """
        wait = self.wait(key)
        if wait and self._interval is not None:
            rate = 60.0 / self._interval
            message = f"more than {rate:g} requests a minute with this key; wait {wait} s"
            raise RequestError(
                status=429, message=message, code="rate_limit_exceeded", retry_after=wait
            )


_BODIES_PER_PLACE = 4


class Slots:
    """Counts what is under way, so that one client leaves room for the others.

    Args:
        most: For all together.
        each: Returns the limit of one client; called each time, since keys may come and go.

    Example:
        >>> slots = Slots(most=3, each=lambda: 2)
        >>> [slots.take(who) for who in ("ann", "ann", "ann", "bob", "eve")]
        [True, True, False, True, False]
    """

    def __init__(self, *, most: int, each: Callable[[], int]) -> None:
        self._most, self._each = most, each
        self._taken: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._taken.total()

    def take(self, who: str) -> bool:
        """Take one for a client, which ``free`` gives back; False where it has to wait."""
        is_free = len(self) < self._most and self._taken[who] < self._each()
        self._taken[who] += is_free
        return is_free

    def free(self, who: str) -> None:
        """Give one back."""
        self._taken[who] -= 1
        self._taken += Counter()  # forgets clients that hold none

    @contextmanager
    def held(self, who: str) -> Iterator[None]:
        """One is held inside.

        Raises:
            RequestError: The client has to wait.
        """
        if not self.take(who):
            raise self.refusal(who)
        try:
            yield
        finally:
            self.free(who)

    def refusal(self, who: str) -> RequestError:
        """The message for a client that got no slot."""
        is_full = len(self) >= self._most
        count, whose = (self._most, "") if is_full else (self._taken[who], " of this client")
        return RequestError(
            status=503 if is_full else 429,
            message=f"{count} requests{whose} are being answered already; try again in a second",
            code="overloaded" if is_full else "too_many_at_once",
            retry_after=1,
        )


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
