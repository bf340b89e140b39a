"""A server's metrics, in Prometheus' text format 0.0.4.

The few lines that a server needs of it; all of it runs on one event loop, so nothing is locked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.episodes import Episode
from agentkit.library.replicas import Replica

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Bounds of the buckets of a histogram of times; each holds those before it."""

_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "agentkit_requests_total": ("Requests answered.", "route", "status", "key"),
    "agentkit_runs_started_total": ("Runs of the agent that began.",),
    "agentkit_runs_ended_total": ("Runs by how they ended.", "outcome"),
    "agentkit_tokens_total": ("Tokens of the model.", "kind"),
    "agentkit_tool_calls_total": ("Tool calls.", "tool", "status"),
    "agentkit_tool_failures_total": ("Tool calls that failed, by label.", "tool", "label"),
}
_TIMES: Mapping[str, tuple[str, ...]] = {
    "agentkit_request_seconds": ("Time to the end of the answer.", "route"),
    "agentkit_first_text_seconds": ("Time to the first text of a stream.",),
}
"""By name what a number says, and its labels."""

_NO_SUCH_TOOL = "(unknown)"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Gauges: TypeAlias = Mapping[str, tuple[str, Callable[[], float]]]
"""By name what a number says, and how it is looked up; one that ends in ``_total`` only grows."""


class Metrics:
    r"""The numbers of one server process.

    Args:
        gauges: The values to read.

    Example:
        >>> metrics = Metrics({"agentkit_draining": ("Whether it stops.", lambda: 0)})
        >>> metrics.count("agentkit_tokens_total", "prompt", by=7)
        >>> print(*(line for line in metrics.text().splitlines() if "tokens" in line), sep="\n")
        # HELP agentkit_tokens_total Tokens of the model.
        # TYPE agentkit_tokens_total counter
        agentkit_tokens_total{kind="prompt"} 7
    """

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges
        self._counts: dict[str, Counter[tuple[str, ...]]] = {
            name: Counter() if labels else Counter({(): 0})
            for name, (_, *labels) in _COUNTERS.items()
        }
        self._times: dict[str, dict[tuple[str, ...], list[float]]] = {name: {} for name in _TIMES}

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        """Count ``by`` more."""
        self._counts[name][labels] += by

    def time(self, name: str, seconds: float, *labels: str) -> None:
        """Take one time."""
        taken = self._times[name].setdefault(labels, [])
        taken[:] = taken or [0.0] * (len(SECONDS) + 2)
        for at, bound in enumerate(SECONDS):
            taken[at] += seconds <= bound
        taken[-2] += 1
        taken[-1] += seconds

    def observe(self, episode: Episode) -> None:
        """Count what is in an episode."""
        self.count("agentkit_runs_ended_total", episode.stop_reason)
        usage = episode.usage
        for kind in ("prompt", "cached", "completion"):
            self.count("agentkit_tokens_total", kind, by=getattr(usage, f"{kind}_tokens"))
        for result in episode.results:
            failure = result.failure
            # A name that a model made up is not a label: there is no end of such names.
            known = failure is None or failure.kind != "unknown_tool"
            tool = result.name if known else _NO_SUCH_TOOL
            self.count("agentkit_tool_calls_total", tool, result.status)
            if failure is not None:
                self.count("agentkit_tool_failures_total", tool, failure.kind)

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, (words, *labels) in _COUNTERS.items():
            yield from _head(name, words, "counter")
            for values, count in sorted(self._counts[name].items()):
                yield _sample(name, labels, values, count)
        for name, (words, *labels) in _TIMES.items():
            yield from _head(name, words, "histogram")
            for values, (*buckets, total) in sorted(self._times[name].items()):
                for bound, number in zip((*map(str, SECONDS), "+Inf"), buckets, strict=True):
                    yield _sample(f"{name}_bucket", (*labels, "le"), (*values, bound), number)
                yield _sample(f"{name}_sum", labels, values, total)
                yield _sample(f"{name}_count", labels, values, buckets[-1])
        for name, (words, read) in self._gauges.items():
            yield from _head(name, words, "counter" if name.endswith("_total") else "gauge")
            yield _sample(name, (), (), read())


def _head(name: str, words: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {words}", f"# TYPE {name} {kind}"


def _sample(name: str, labels: Sequence[str], values: Sequence[str], number: float) -> str:
    pairs = zip(labels, values, strict=True)
    inside = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in pairs)
    return f"{name}{{{inside}}} {number:.15g}" if inside else f"{name} {number:.15g}"


def store_gauges(queue: EpisodeQueue, replica: Replica | None) -> Gauges:
    """The state of the layers between an agent and its store."""
    read: dict[str, tuple[str, Callable[[], float]]] = {
        "agentkit_episodes_kept_total": ("Episodes that the store has.", lambda: queue.state.kept),
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
        }
    return read
