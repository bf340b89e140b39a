"""``observe_replica``: how a replica stands to its store, as metrics of OpenTelemetry."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from agentkit._version import __version__
from agentkit.errors import MissingExtraError
from agentkit.library.replicas import Replica, ReplicaStatus
from agentkit.tracing import conventions as names

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

_Read: TypeAlias = Callable[[ReplicaStatus], float]

_GAUGES: tuple[tuple[str, str, str, _Read], ...] = (
    ("agentkit.library.version", "{version}", "Version that runs begin with.", lambda s: s.version),
    (
        "agentkit.library.staleness",
        "s",
        "Time since the library was known to be the newest.",
        lambda status: status.staleness_seconds,
    ),
    (
        "agentkit.store.away",
        "1",
        "1 while the store does not answer and the last library is served.",
        lambda status: float(status.state == "away"),
    ),
    (
        "agentkit.library.behind",
        "1",
        "1 while the store answers and its newest library can not be taken up.",
        lambda status: float(status.state == "behind"),
    ),
)
_COUNTERS: tuple[tuple[str, str, str, _Read], ...] = (
    (
        "agentkit.library.refreshes",
        "{version}",
        "Library versions that were taken up.",
        lambda status: status.refreshes,
    ),
    (
        "agentkit.library.refresh.failures",
        "{look}",
        "Looks at the store that failed.",
        lambda status: status.failed_looks,
    ),
    (
        "agentkit.library.hints",
        "{hint}",
        "Times that the store called for a look.",
        lambda status: status.hints,
    ),
)


def observe_replica(
    replica: Replica, *, name: str = "library", meter_provider: MeterProvider | None = None
) -> None:
    """Report how a replica stands, each time that metrics are collected.

    The replica is not kept alive by it: of one that is gone nothing more is reported.

    Args:
        replica: Which.
        name: Tells it apart from other replicas of the process, as ``agentkit.replica.name``.
        meter_provider: Makes the instruments; None takes the global one.

    Raises:
        MissingExtraError: ``opentelemetry-api`` is not installed.

    Example:
        >>> with Replica("memory:") as store:
        ...     observe_replica(store)
    """
    try:
        from opentelemetry import metrics
    except ImportError as error:
        raise MissingExtraError(
            "observe_replica",
            package="opentelemetry-api",
            install='pip install "agentkit-evolve[otel]"',
        ) from error
    held = weakref.ref(replica)
    about = {"agentkit.replica.name": name}

    def reading(read: _Read) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observations(_: CallbackOptions) -> Iterable[Observation]:
            found = held()
            return () if found is None else (metrics.Observation(read(found.status), about),)

        return observations

    meter = metrics.get_meter("agentkit", __version__, meter_provider, names.SCHEMA_URL)
    for title, unit, words, read in _GAUGES:
        meter.create_observable_gauge(title, [reading(read)], unit=unit, description=words)
    for title, unit, words, read in _COUNTERS:
        meter.create_observable_counter(title, [reading(read)], unit=unit, description=words)
