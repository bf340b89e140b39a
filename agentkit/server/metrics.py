"""A server's metrics, in Prometheus' text format 0.0.4.

The few lines that a server needs of it; all of it runs on one event loop, so nothing is locked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.episodes import Episode
from agentkit.library.replicas import Replica

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Bounds of the buckets for the time of a request."""

_NO_SUCH_TOOL = "(unknown)"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Gauges: TypeAlias = Mapping[str, tuple[str, Callable[[], float]]]
"""By name what a number says, and how it is looked up; one that ends in ``_total`` only grows."""


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
        self._values: dict[tuple[str, ...], float] = defaultdict(float)
        if not labels:
            self._values[()] = 0

    def add(self, *labels: str, by: float = 1) -> None:
        """Count ``by`` more."""
        self._values[labels] += by

    def lines(self) -> Iterator[str]:
        """The metric as text."""
        yield from _head(self._name, self._words, "counter")
        for labels, value in sorted(self._values.items()):
            yield _sample(self._name, self._labels, labels, value)


class Histogram:
    """The distribution of values, for each combination of labels.

    Args:
        name: The metric's name, with its unit.
        words: What is measured.
        bounds: Upper bounds of the buckets, ascending; one without bound is added.
        labels: Names of its labels.
    """

    def __init__(self, name: str, words: str, bounds: Sequence[float], *labels: str) -> None:
        self._name, self._words, self._labels = name, words, labels
        self._bounds = (*bounds, float("inf"))
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = defaultdict(float)

    def observe(self, value: float, *labels: str) -> None:
        """Take one value; a bucket holds those before it."""
        counts = self._counts.setdefault(labels, [0] * len(self._bounds))
        for at, bound in enumerate(self._bounds):
            counts[at] += value <= bound
        self._sums[labels] += value

    def lines(self) -> Iterator[str]:
        """The metric as text: the buckets, the sum and the count."""
        yield from _head(self._name, self._words, "histogram")
        for labels, counts in sorted(self._counts.items()):
            names = (*self._labels, "le")
            for bound, count in zip(self._bounds, counts, strict=True):
                yield _sample(f"{self._name}_bucket", names, (*labels, _number(bound)), count)
            yield _sample(f"{self._name}_sum", self._labels, labels, self._sums[labels])
            yield _sample(f"{self._name}_count", self._labels, labels, counts[-1])


def _head(name: str, words: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {words}", f"# TYPE {name} {kind}"


def _sample(name: str, names: Sequence[str], labels: Sequence[str], value: float) -> str:
    pairs = zip(names, labels, strict=True)
    inside = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in pairs)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


class Metrics:
    """The numbers of one server process.

    Args:
        gauges: The values to read.
    """

    def __init__(self, gauges: Gauges) -> None:
        labels = ("route", "status", "key")
        self.requests = Counter("agentkit_requests_total", "Requests answered.", *labels)
        self.seconds = Histogram(
            "agentkit_request_seconds", "Time to the end of the answer.", SECONDS, "route"
        )
        self.first_text = Histogram(
            "agentkit_first_text_seconds", "Time to the first text of a stream.", SECONDS
        )
        self.runs = Counter("agentkit_runs_started_total", "Runs of the agent that began.")
        self._ended = Counter("agentkit_runs_ended_total", "Runs by how they ended.", "outcome")
        self._tokens = Counter("agentkit_tokens_total", "Tokens of the model.", "kind")
        self._calls = Counter("agentkit_tool_calls_total", "Tool calls.", "tool", "status")
        self._failures = Counter(
            "agentkit_tool_failures_total", "Tool calls that failed, by label.", "tool", "label"
        )
        self._gauges = gauges

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        counted: tuple[Counter | Histogram, ...] = (self.requests, self.seconds, self.first_text)
        counted += (self.runs, self._ended, self._tokens, self._calls, self._failures)
        lines = [line for one in counted for line in one.lines()]
        for name, (words, read) in self._gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [*_head(name, words, kind), _sample(name, (), (), read())]
        return "".join(f"{line}\n" for line in lines)

    def observe(self, episode: Episode) -> None:
        """Count what is in an episode."""
        self._ended.add(episode.stop_reason)
        usage = episode.usage
        self._tokens.add("prompt", by=usage.prompt_tokens)
        self._tokens.add("cached", by=usage.cached_tokens)
        self._tokens.add("completion", by=usage.completion_tokens)
        for result in episode.results:
            failure = result.failure
            # A name that a model made up is not a label: there is no end of such names.
            known = failure is None or failure.kind != "unknown_tool"
            tool = result.name if known else _NO_SUCH_TOOL
            self._calls.add(tool, result.status)
            if failure is not None:
                self._failures.add(tool, failure.kind)


def store_gauges(queue: EpisodeQueue, replica: Replica | None) -> Gauges:
    """The state of the layers between an agent and its store."""
    read: dict[str, tuple[str, Callable[[], float]]] = {
        "agentkit_episodes_kept_total": (
            "Episodes that the store has.",
            lambda: queue.state.kept,
        ),
        "agentkit_episodes_not_kept_total": (
            "Episodes that the store did not take at first, or never will.",
            lambda: queue.state.delayed + queue.state.refused,
        ),
        "agentkit_episodes_waiting": (
            "Episodes in memory that the store has not got yet.",
            lambda: queue.state.waiting,
        ),
    }
    if replica is not None:
        read |= {
            "agentkit_library_staleness_seconds": (
                "Time since the library was known to be the newest.",
                lambda: replica.status.staleness_seconds,
            ),
            "agentkit_store_away": (
                "1 while the store does not answer and the last library is served.",
                lambda: replica.status.state == "away",
            ),
            "agentkit_library_behind": (
                "1 while the store answers and its newest library cannot be taken up.",
                lambda: replica.status.state == "behind",
            ),
            "agentkit_library_refreshes_total": (
                "Library versions that were taken up.",
                lambda: replica.status.refreshes,
            ),
            "agentkit_library_refresh_failures_total": (
                "Looks at the store that failed.",
                lambda: replica.status.failed_looks,
            ),
        }
    return read
