"""What a server counts, in Prometheus' text format 0.0.4.

The few lines that a server needs of it; all of it runs on one event loop, so nothing is locked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Literal

from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.episodes import Episode
from agentkit.library.episode_writer import EpisodeWriter
from agentkit.library.replicas import Replica

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]


class Counter:
    r"""A number for each combination of labels; it only grows.

    Args:
        name: The metric's name, ending in ``_total``.
        words: What it counts.
        labels: Names of its labels.

    Example:
        >>> seen = Counter("seen_total", "What was seen.", "kind")
        >>> seen.add("bird")
        >>> print(*seen.lines(), sep="\n")
        # HELP seen_total What was seen.
        # TYPE seen_total counter
        seen_total{kind="bird"} 1
    """

    def __init__(self, name: str, words: str, *labels: str) -> None:
        self._name, self._words, self._labels = name, words, labels
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count ``by`` more."""
        self._values[labels] = self._values.get(labels, 0) + by

    def value(self, *labels: str) -> float:
        """How much was counted under these labels."""
        return self._values.get(labels, 0)

    def total(self) -> float:
        """How much was counted under all labels."""
        return sum(self._values.values())

    def lines(self) -> Iterator[str]:
        """The metric as text."""
        yield from _head(self._name, self._words, "counter")
        for labels, value in sorted(self._values.items()):
            yield _sample(self._name, zip(self._labels, labels, strict=True), value)


class Gauge:
    """A number that is looked up when somebody asks.

    Args:
        name: The metric's name.
        words: What it is.
        read: Gives it.
        kind: ``counter`` for one that somebody else counts and that only grows.
    """

    def __init__(
        self,
        name: str,
        words: str,
        read: Callable[[], float],
        *,
        kind: Literal["gauge", "counter"] = "gauge",
    ) -> None:
        self._name, self._words, self._read, self._kind = name, words, read, kind

    def lines(self) -> Iterator[str]:
        """The metric as text."""
        yield from _head(self._name, self._words, self._kind)
        yield _sample(self._name, (), self._read())


class Histogram:
    """How values are spread, for each combination of labels.

    Args:
        name: The metric's name, with its unit.
        words: What is measured.
        bounds: Upper bounds of the buckets, ascending; one without bound is added.
        labels: Names of its labels.
    """

    def __init__(self, name: str, words: str, bounds: Sequence[float], *labels: str) -> None:
        self._name, self._words, self._bounds, self._labels = name, words, tuple(bounds), labels
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Take one value."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> Iterator[str]:
        """The metric as text: buckets that each hold those before, the sum and the count."""
        yield from _head(self._name, self._words, "histogram")
        for labels, counts in sorted(self._counts.items()):
            own = list(zip(self._labels, labels, strict=True))
            totals = list(accumulate(counts))
            for bound, total in zip((*self._bounds, float("inf")), totals, strict=True):
                yield _sample(f"{self._name}_bucket", [*own, ("le", _number(bound))], total)
            yield _sample(f"{self._name}_sum", own, self._sums[labels])
            yield _sample(f"{self._name}_count", own, totals[-1])


def _head(name: str, words: str, kind: str) -> tuple[str, str]:
    text = words.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


def _sample(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Bounds of the buckets for the time of a request."""

_NO_SUCH_TOOL = "(unknown)"


class Measures:
    """The numbers of one server process.

    Args:
        in_flight: Gives how many runs are under way.
        draining: Gives whether the server is about to stop.
        library_version: Gives the version of the library that runs begin with.
        queue: Takes the episodes to the store.
        replica: Where that library comes from, if it looks for new versions by itself.
        writer: Gathers the episodes, if one does.
    """

    def __init__(
        self,
        *,
        in_flight: Callable[[], int],
        draining: Callable[[], bool],
        library_version: Callable[[], int],
        queue: EpisodeQueue,
        replica: Replica | None = None,
        writer: EpisodeWriter | None = None,
    ) -> None:
        self.requests = Counter(
            "agentkit_requests_total", "Requests answered.", "route", "status", "key"
        )
        self.seconds = Histogram(
            "agentkit_request_seconds", "Time to the end of the answer.", SECONDS, "route"
        )
        self.first_text = Histogram(
            "agentkit_first_text_seconds", "Time to the first text of a stream.", SECONDS
        )
        self.runs = Counter("agentkit_runs_started_total", "Runs of the agent that began.")
        self.ended = Counter("agentkit_runs_ended_total", "Runs by how they ended.", "outcome")
        self.tokens = Counter("agentkit_tokens_total", "Tokens of the model.", "kind")
        self.calls = Counter("agentkit_tool_calls_total", "Tool calls.", "tool", "status")
        self.failures = Counter(
            "agentkit_tool_failures_total", "Tool calls that failed, by label.", "tool", "label"
        )
        self._gauges = (
            Gauge("agentkit_runs_in_flight", "Runs that are under way.", in_flight),
            Gauge("agentkit_draining", "1 while the server is about to stop.", draining),
            Gauge("agentkit_library_version", "Version that runs begin with.", library_version),
            *_gauges_of_queue(queue),
            *(() if replica is None else _gauges_of(replica)),
            *(() if writer is None else _gauges_of_writer(writer)),
        )

    def tell(self, episode: Episode) -> None:
        """Count what is in an episode."""
        self.ended.add(episode.stop_reason)
        usage = episode.usage
        self.tokens.add("prompt", by=usage.prompt_tokens)
        self.tokens.add("cached", by=usage.cached_tokens)
        self.tokens.add("completion", by=usage.completion_tokens)
        for result in episode.results:
            failure = result.failure
            # A name that a model made up is not a label: there is no end of such names.
            known = failure is None or failure.kind != "unknown_tool"
            tool = result.name if known else _NO_SUCH_TOOL
            self.calls.add(tool, result.status)
            if failure is not None:
                self.failures.add(tool, failure.kind)

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for counted in (self.requests, self.seconds, self.first_text, self.runs, self.ended):
            yield from counted.lines()
        for counted in (self.tokens, self.calls, self.failures):
            yield from counted.lines()
        for gauge in self._gauges:
            yield from gauge.lines()


def _gauges_of(replica: Replica) -> tuple[Gauge, ...]:
    return (
        Gauge(
            "agentkit_library_staleness_seconds",
            "Time since the library was known to be the newest.",
            lambda: replica.staleness_seconds,
        ),
        Gauge(
            "agentkit_store_away",
            "1 while the store does not answer and the last library is served.",
            lambda: replica.status.state == "away",
        ),
        Gauge(
            "agentkit_library_behind",
            "1 while the store answers and its newest library can not be taken up.",
            lambda: replica.status.state == "behind",
        ),
        Gauge(
            "agentkit_library_refreshes_total",
            "Library versions that were taken up.",
            lambda: replica.status.refreshes,
            kind="counter",
        ),
        Gauge(
            "agentkit_library_refresh_failures_total",
            "Looks at the store that failed.",
            lambda: replica.status.failed_looks,
            kind="counter",
        ),
    )


def _gauges_of_queue(queue: EpisodeQueue) -> tuple[Gauge, ...]:
    return (
        Gauge(
            "agentkit_episodes_kept_total",
            "Episodes that the store has.",
            lambda: queue.state.kept,
            kind="counter",
        ),
        Gauge(
            "agentkit_episodes_not_kept_total",
            "Episodes that the store did not take at first, or never will.",
            lambda: queue.state.delayed + queue.state.refused,
            kind="counter",
        ),
        Gauge(
            "agentkit_episodes_waiting",
            "Episodes in memory that the store has not got yet.",
            lambda: queue.state.waiting,
        ),
    )


def _gauges_of_writer(writer: EpisodeWriter) -> tuple[Gauge, ...]:
    return (
        Gauge(
            "agentkit_episodes_in_memory",
            "Episodes that neither the store nor a file has yet.",
            lambda: writer.state.pending,
        ),
        Gauge(
            "agentkit_episodes_in_files",
            "Episodes in files that the store has not got yet.",
            lambda: writer.state.spilled,
        ),
        Gauge(
            "agentkit_episodes_refused_total",
            "Episodes that the store would not take, set aside in a file.",
            lambda: writer.state.refused,
            kind="counter",
        ),
    )


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
