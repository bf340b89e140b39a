"""An episode in the names of the library, where its tools were offered under other names.

Tools of one name can not be in one library, and a benchmark may have many: each of its questions
brings tools of its own. So the catalogue calls them ``search`` and ``search__2``, a question offers
either as ``search``, and the episode records which one it was (``Episode.library_names``).
Whoever learns about tools from episodes reads them through this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from agentkit.episodes.diagnosis import Attribution, Diagnosis, Recovery, TurnDiagnosis
from agentkit.episodes.episode import Episode, GoalTrace, RefineTrace, RetrievalTrace, Turn
from agentkit.episodes.verdict import Evidence, Verdict
from agentkit.messages import AssistantMessage, ToolCall, ToolResult


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
    names = episode.library_names
    if not names:
        return episode

    def named(value: Any) -> Any:
        return names.get(value, value) if isinstance(value, str) else value

    def also(record: Any) -> Mapping[str, Any]:
        if isinstance(record, Evidence) and record.kind == "wrong_tool":
            return {"expected": named(record.expected), "actual": named(record.actual)}
        return {}

    return replace(changed(episode, _NAMED, named, also), library_names={})


_NAMED: Mapping[type, Sequence[str]] = {
    Episode: ("turns", "verdict", "diagnosis"),
    Turn: ("message", "results", "retrieval", "searches", "refine"),
    AssistantMessage: ("tool_calls",),
    ToolCall: ("name",),
    ToolResult: ("name",),
    RetrievalTrace: ("shortlist", "offered", "goals", "cards"),
    GoalTrace: ("ranked",),
    RefineTrace: ("proposals",),
    Verdict: ("evidence",),
    Evidence: ("tool",),
    Diagnosis: ("turns", "recoveries"),
    TurnDiagnosis: ("tool", "evidence", "attributions"),
    Attribution: ("tool",),
    Recovery: ("tool",),
}
"""Where names of tools stand."""


T = TypeVar("T")

Also = Callable[[Any], Mapping[str, Any]]
"""Further fields of a record, which take more than its texts to change."""


def _nothing(_: Any) -> Mapping[str, Any]:
    return {}


def changed(
    record: T,
    fields: Mapping[type, Sequence[str]],
    change: Callable[[Any], Any],
    also: Also = _nothing,
) -> T:
    """The record with what stands in these fields changed; records in them are changed in turn.

    Args:
        record: A dataclass that ``fields`` names, a tuple of such, or what is changed itself.
        fields: The fields to change, by the class of the record.
        change: Changes a value that is neither a tuple nor such a record.
        also: What else to change in a record, as its fields and their new values.
    """
    value: Any = record
    if isinstance(value, tuple):
        return cast("T", tuple(changed(one, fields, change, also) for one in value))
    names = fields.get(type(value))
    if names is None:
        return cast("T", change(value))
    new = {name: changed(getattr(value, name), fields, change, also) for name in names}
    return cast("T", replace(value, **{**new, **also(value)}))
