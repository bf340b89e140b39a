"""``ServerLimits``: what one server takes on."""

from __future__ import annotations

from dataclasses import dataclass, fields

from agentkit.errors import UsageError


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
        drain_seconds: How long runs may go on after the server was told to stop; those that are
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

    @property
    def share(self) -> int:
        """How many runs one client may have at once."""
        return self.max_concurrent_per_key or max(1, self.max_concurrent // 4)
