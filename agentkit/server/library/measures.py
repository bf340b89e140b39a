"""What a library server counts, for ``GET /metrics``."""

from __future__ import annotations

from collections.abc import Callable

from agentkit.server.measures import SECONDS
from agentkit.server.prometheus import Counter, Gauge, Histogram


class LibraryMeasures:
    """The numbers of one server process.

    Args:
        waiting: Gives how many clients wait for news.
        reading: Gives how many requests are being answered from the store.
        version: Gives the newest library version that was read.
    """

    def __init__(
        self,
        *,
        waiting: Callable[[], float],
        reading: Callable[[], float],
        version: Callable[[], float],
    ) -> None:
        self.requests = Counter(
            "agentkit_requests_total", "Requests answered.", "route", "status", "key"
        )
        self.seconds = Histogram(
            "agentkit_request_seconds", "Time to the end of the answer.", SECONDS, "route"
        )
        self.bytes = Counter("agentkit_library_bytes_total", "Bytes of bodies sent.", "route")
        self._gauges = (
            Gauge("agentkit_library_version", "Newest library version that was read.", version),
            Gauge("agentkit_library_waiting", "Clients that wait for news.", waiting),
            Gauge("agentkit_library_reading", "Requests that are read for.", reading),
        )

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        parts = (self.requests, self.seconds, self.bytes, *self._gauges)
        return "".join(f"{line}\n" for part in parts for line in part.lines())
