"""What the server counts, for ``GET /metrics``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.episodes import Episode
from agentkit.library.episode_writer import EpisodeWriter
from agentkit.library.replicas import Replica
from agentkit.server.prometheus import Counter, Gauge, Histogram

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
        Gauge(
            "agentkit_library_hints_total",
            "Times that the store called for a look.",
            lambda: replica.status.hints,
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
