"""What the stored episodes say of each tool: offered, called, failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentkit.episodes import Episode
from agentkit.episodes.labels import is_extra_record
from agentkit.episodes.naming import in_library_names
from agentkit.messages import ToolResult


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Counts over episodes.

    Attributes:
        episodes: How many there were.
        calls: How many calls were made in them.
        shown: In how many episodes each tool was on a shortlist.
        called: How often each tool was called.
        succeeded: How often with a result.
        failures: For each tool, how often each rule was broken.
        requests: For each tool, requests of episodes in which it gave a result, each once.
    """

    episodes: int
    calls: int
    shown: Mapping[str, int]
    called: Mapping[str, int]
    succeeded: Mapping[str, int]
    failures: Mapping[str, Mapping[str, int]]
    requests: Mapping[str, tuple[str, ...]]


def usage_of(episodes: Iterable[Episode]) -> Usage:
    """Count, in one pass and in any order; a shadow run or a view is no use of a tool."""
    shown: Counter[str] = Counter()
    called: Counter[str] = Counter()
    succeeded: Counter[str] = Counter()
    failures: dict[str, Counter[str]] = {}
    requests: dict[str, set[str]] = {}
    number = 0
    for episode in map(in_library_names, episodes):
        if is_extra_record(episode.metadata):
            continue
        number += 1
        shown.update(_shown(episode))
        called.update(call.name for call in episode.calls)
        for result in episode.results:
            if result.status == "ok":
                succeeded[result.name] += 1
                requests.setdefault(result.name, set()).add(episode.request)
            elif result.status == "failed":
                failures.setdefault(result.name, Counter())[_rule(result)] += 1
    return Usage(
        episodes=number,
        calls=called.total(),
        shown=shown,
        called=called,
        succeeded=succeeded,
        failures=failures,
        requests={name: tuple(sorted(filter(None, found))) for name, found in requests.items()},
    )


def _shown(episode: Episode) -> set[str]:
    traces = [turn.retrieval for turn in episode.turns if turn.retrieval is not None]
    return {name for trace in traces for name in (*trace.shortlist, *trace.offered)}


def _rule(result: ToolResult) -> str:
    failure = result.failure
    if failure is None:
        return "failed without a reason"
    return f"{failure.kind}: {failure.rule}" if failure.rule else failure.kind
