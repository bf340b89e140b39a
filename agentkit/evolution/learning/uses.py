"""What tools were used for: successful calls, each with the words that it served."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentkit.agent.selection import SEARCH_TOOL
from agentkit.episodes import Episode, RetrievalTrace
from agentkit.episodes.late_verdicts import with_late_verdicts
from agentkit.episodes.naming import in_library_names
from agentkit.messages import JsonObject
from agentkit.retrieval.words import terms

Passed: TypeAlias = Callable[[Episode], bool]
"""Whether an episode went well enough to learn from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """One call that succeeded, and words that it served.

    Attributes:
        tool: The tool that was called.
        arguments: What it was given, as the model wrote it.
        result: What it gave, as JSON data.
        query: The words that it served; empty when nobody said any.
        episode_id: Where it happened.
    """

    tool: str
    arguments: JsonObject
    result: Any
    query: str
    episode_id: str


def has_passed(episode: Episode) -> bool:
    """Whether a verdict says that an episode went well. Without a verdict nobody knows."""
    return episode.verdict is not None and episode.verdict.passed


def uses_of(episodes: Iterable[Episode], *, passed: Passed = has_passed) -> tuple[Use, ...]:
    """The successful calls of episodes that went well, oldest episode first.

    A call served the sub-goal for which its tool was ranked best, when a planner had split the
    request, and else the whole request; and the words of the search with which the model itself
    found the tool, which makes a second use. A request is not cut into sentences for the calls
    that it led to: that was measured, and finds tools less well (``docs/learning.md``).

    Args:
        episodes: What happened. One that answers the waiting calls of another takes over its
            request, when that is among them. A verdict that came later counts in place of the
            episode's own (``with_late_verdicts``). Records of shadow runs and views are left out.
        passed: Which of them went well.

    Example:
        >>> from agentkit.episodes import Turn, Verdict
        >>> from agentkit.messages import AssistantMessage, ToolCall, ToolResult
        >>> call = ToolCall(call_id="1", name="weather", arguments={"city": "Rome"})
        >>> result = ToolResult(call_id="1", name="weather", status="ok", value="sunny")
        >>> turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
        >>> episode = Episode(
        ...     episode_id="e1", request="Umbrella in Rome?", turns=(turn,),
        ...     verdict=Verdict(passed=True),
        ... )
        >>> [(use.tool, use.query) for use in uses_of([episode])]
        [('weather', 'Umbrella in Rome?')]
    """
    judged = with_late_verdicts(episodes)
    known = {episode.episode_id: episode for episode in map(in_library_names, judged)}
    ordered = sorted(known.values(), key=lambda episode: (episode.started_at, episode.episode_id))
    return tuple(use for episode in ordered if passed(episode) for use in _uses(episode, known))


def _uses(episode: Episode, known: Mapping[str, Episode]) -> Iterator[Use]:
    begun = _begun(episode, known)
    served = _Served(request=begun.request, trace=_trace(begun))
    searches: list[RetrievalTrace] = []
    for turn in episode.turns:
        results = {result.call_id: result for result in turn.results}
        for call in turn.message.tool_calls:
            result = results.get(call.call_id)
            if result is None or result.status != "ok":
                continue
            if turn.searches and call.name == SEARCH_TOOL:
                continue  # the model looked for tools
            for query in served.queries(call.name, searches):
                yield Use(
                    tool=call.name,
                    arguments=call.arguments,
                    result=result.value,
                    query=query,
                    episode_id=episode.episode_id,
                )
        searches += turn.searches


def _begun(episode: Episode, known: Mapping[str, Episode]) -> Episode:
    """The episode in which the user said what this one goes on with."""
    seen: set[str] = set()
    while not episode.request and episode.resumes is not None and episode.resumes not in seen:
        seen.add(episode.resumes)
        episode = known.get(episode.resumes, episode)
    return episode


def _trace(episode: Episode) -> RetrievalTrace | None:
    return next((turn.retrieval for turn in episode.turns if turn.retrieval is not None), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Served:
    """What the tools of one episode were for.

    Attributes:
        request: What the user said.
        trace: What was found for it; None when all tools were offered.
    """

    request: str
    trace: RetrievalTrace | None

    def queries(self, tool: str, searches: Sequence[RetrievalTrace]) -> Iterator[str]:
        """The words that a call served: those of the user, or of a planner, come first.

        A tool that the request did not find, and a search of the model did, served the words of
        that search as well, unless the model called it by its name.
        """
        yield self._asked(tool)
        if self.trace is not None and tool in self.trace.offered:
            return
        found = next((one for one in reversed(searches) if tool in one.shortlist), None)
        if found is not None and not set(terms(found.query)) <= set(terms(tool)):
            yield found.query

    def _asked(self, tool: str) -> str:
        goals = () if self.trace is None else self.trace.goals
        ranked = [(goal.ranked.index(tool), goal.intent) for goal in goals if tool in goal.ranked]
        if not ranked:
            return self.request
        _, intent = min(ranked, key=lambda one: one[0])  # the first of two equal ranks
        return intent or self.request
