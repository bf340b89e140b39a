"""An episode in the names of the library, where its tools were offered under other names.

Tools of one name can not be in one library, and a benchmark may have many: each of its questions
brings tools of its own. So the catalogue calls them ``search`` and ``search__2``, a question offers
either as ``search``, and the episode records which one it was (``Episode.library_names``).
Whoever learns about tools from episodes reads them through this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentkit.episodes.diagnosis import Attribution, Diagnosis, Recovery, TurnDiagnosis
from agentkit.episodes.episode import Episode, GoalTrace, RefineTrace, RetrievalTrace, Turn
from agentkit.episodes.verdict import Evidence, Verdict
from agentkit.messages import ToolCall, ToolResult


def in_library_names(episode: Episode) -> Episode:
    """The episode as if each tool had been offered under the name that the library has for it.

    Calls, results, what was searched for and found, the verdict's evidence and the diagnosis are
    renamed. Texts, which models and people have read, stay as they were.

    Returns:
        The episode itself when nothing was offered under another name, which includes episodes
        that were recorded before there was such a record.

    Example:
        >>> from agentkit.messages import AssistantMessage
        >>> call = ToolCall(call_id="1", name="search", arguments={"q": "tea"})
        >>> turn = Turn(message=AssistantMessage(tool_calls=(call,)))
        >>> episode = Episode(
        ...     episode_id="e1", request="Tea?", turns=(turn,),
        ...     library_names={"search": "search__2"},
        ... )
        >>> [call.name for call in in_library_names(episode).calls]
        ['search__2']
        >>> in_library_names(Episode(episode_id="e2", request="Tea?", turns=(turn,))).calls[0].name
        'search'
    """
    if not episode.library_names:
        return episode
    return _Renaming(episode.library_names).episode(episode)


class _Renaming:
    """Puts names of the library in the place of those that the episode used."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def episode(self, one: Episode) -> Episode:
        return replace(
            one,
            turns=tuple(map(self._turn, one.turns)),
            verdict=None if one.verdict is None else self._verdict(one.verdict),
            diagnosis=None if one.diagnosis is None else self._diagnosis(one.diagnosis),
            library_names={},
        )

    def _name(self, name: str) -> str:
        return self._names.get(name, name)

    def _all(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(self._name, names))

    def _turn(self, one: Turn) -> Turn:
        return replace(
            one,
            message=replace(one.message, tool_calls=self._calls(one.message.tool_calls)),
            results=tuple(map(self._result, one.results)),
            retrieval=None if one.retrieval is None else self._trace(one.retrieval),
            searches=tuple(map(self._trace, one.searches)),
            refine=None if one.refine is None else self._refine(one.refine),
        )

    def _calls(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        return tuple(replace(call, name=self._name(call.name)) for call in calls)

    def _result(self, one: ToolResult) -> ToolResult:
        return replace(one, name=self._name(one.name))

    def _trace(self, one: RetrievalTrace) -> RetrievalTrace:
        return replace(
            one,
            shortlist=self._all(one.shortlist),
            offered=self._all(one.offered),
            goals=tuple(map(self._goal, one.goals)),
            cards=self._all(one.cards),
        )

    def _goal(self, one: GoalTrace) -> GoalTrace:
        return replace(one, ranked=self._all(one.ranked))

    def _refine(self, one: RefineTrace) -> RefineTrace:
        return replace(one, proposals=tuple(map(self._calls, one.proposals)))

    def _verdict(self, one: Verdict) -> Verdict:
        return replace(one, evidence=tuple(map(self._evidence, one.evidence)))

    def _evidence(self, one: Evidence) -> Evidence:
        renamed = replace(one, tool=self._name(one.tool))
        if one.kind != "wrong_tool":
            return renamed
        return replace(renamed, expected=self._value(one.expected), actual=self._value(one.actual))

    def _value(self, value: Any) -> Any:
        return self._name(value) if isinstance(value, str) else value

    def _diagnosis(self, one: Diagnosis) -> Diagnosis:
        return replace(
            one,
            turns=tuple(map(self._turn_diagnosis, one.turns)),
            recoveries=tuple(map(self._recovery, one.recoveries)),
        )

    def _turn_diagnosis(self, one: TurnDiagnosis) -> TurnDiagnosis:
        return replace(
            one,
            tool=self._name(one.tool),
            evidence=tuple(map(self._evidence, one.evidence)),
            attributions=tuple(map(self._attribution, one.attributions)),
        )

    def _attribution(self, one: Attribution) -> Attribution:
        return replace(one, tool=self._name(one.tool))

    def _recovery(self, one: Recovery) -> Recovery:
        return replace(one, tool=self._name(one.tool))
