"""Read stored episodes: by agentkit's own labels, in the library's names, as last judged.

agentkit puts labels of its own into ``Episode.metadata``, beside those of callers. While a change
of a tool is tried on real requests, these say which episode belongs to which side of the
experiment. So gates are functions of stored episodes, and can be worked out again at any time.

Tools of one name cannot be in one library, and a benchmark may have many: each of its questions
brings tools of its own. So the catalogue calls them ``search`` and ``search__2``, a question offers
either as ``search``, and the episode records which one it was (``Episode.library_names``).
Code that learns about tools from episodes reads them through ``in_library_names``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.episodes.episode import (
    Episode,
    GoalTrace,
    ProgramCall,
    RefineTrace,
    RetrievalTrace,
    Turn,
)
from agentkit.episodes.verdict import (
    Attribution,
    Diagnosis,
    Evidence,
    Recovery,
    TurnDiagnosis,
    Verdict,
)
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.records import changed

KEY_LABEL = "key"
REQUEST_LABEL = "request_id"
WITNESS = "witness"
"""Labels of a run behind ``agentkit serve``: the name of the key that was shown, where there are
keys; the id of the request; and the key once more where several clients ask."""

ANONYMOUS = "anonymous"
"""The label ``user`` of a served run where neither the request nor a key names somebody."""

EXPERIMENT = "experiment"
"""Id of the proposal that was being tried."""

ARM = "arm"
"""``candidate``: the run used the proposed definition; ``control``: the one that there was."""

CANDIDATE = "candidate_digest"
"""Digest of the proposed definition; a proposal moves to another one when its tool changes."""

LEFT_EXPERIMENT = "left_experiment"
"""Id of the proposal whose experiment the conversation was taken out of."""

LEFT_BECAUSE = "left_because"
"""Why it was: ``rolled_back``, ``pinned`` and so on."""

INSTRUCTIONS, INSTRUCTIONS_DIGEST = "instructions", "instructions_digest"
"""Name and digest of the library's instructions that the run was given, where it was given any."""

SHADOW_OF = "shadow_of"
"""Id of the episode that a shadow run repeats. Nothing was executed, and no user saw it."""

VIEW_OF = "view_of"
"""Id of an episode of which this record is another view: the part that a shadow run repeats, or a
copy with a verdict. Nothing happened a second time."""

PROBE_OF = "probe_of"
"""The tool that the run probed (``agentkit.evolution.explore``): nobody asked for it."""

WAITING_AGENT, WAITING_TOOLS, WAITING_SPENT = "waiting_agent", "waiting_tools", "waiting_spent"
WAITING_LABELS = frozenset({WAITING_AGENT, WAITING_TOOLS, WAITING_SPENT})
"""Of a run that waits: the name of its agent, a digest of the tools that its calls are of, and what
it spent of its limits, with the runs that it goes on from."""

CONVERSATION = "conversation"
"""The conversation, or the run, that an agent was asked in by another one: its episodes are of no
session, and two of one conversation prove no more than one."""

SOURCE, OVER_MCP = "source", "mcp"
"""Label of the episode of one call by a client of ``serve --mcp``, which has its conversation."""

IMPORTED = "imported"
"""The file from which ``agentkit import`` read a record that nobody said to be one's own. What it
tells are a stranger's words: nothing is learned from it, and no experiment counts it."""

FEEDBACK_SHELF = "feedback/"
"""Before the id of an episode, in the ``session_id`` of what users said of it."""

TRACE_ID = "trace_id"
"""Id of the trace that the run is a part of, in hexadecimal digits, when it was traced."""

SPAN_ID = "span_id"
"""Id of the run's span in it."""

TRACE_LABELS = frozenset({TRACE_ID, SPAN_ID})
"""Labels that identify a run's span in a tracing system."""

ROUTE_LABELS = frozenset({EXPERIMENT, ARM, CANDIDATE, LEFT_EXPERIMENT, LEFT_BECAUSE})
"""What a router says about one run."""


_CLIENT = "client."  # before the names of labels that a client of ``agentkit serve`` gives

_OF_EVALUATIONS = {"run", "benchmark", "settings", "task", "category", "attempt", "ends"}
_OF_EVALUATIONS |= {"user_turn", "user_turns"}
_OWN = frozenset({KEY_LABEL, WITNESS, INSTRUCTIONS, INSTRUCTIONS_DIGEST, SHADOW_OF, VIEW_OF})
_OWN |= {PROBE_OF, SOURCE, IMPORTED, "parent_run", "delegation_depth"}
_OWN |= WAITING_LABELS | TRACE_LABELS | ROUTE_LABELS | _OF_EVALUATIONS


def words_of_callers(episode: Episode) -> tuple[str, ...]:
    """What whoever made a request may have chosen beside its text, and tools can read.

    Labels that are not agentkit's own, the user's name among them; the ids of the session and of
    the request; and names and texts of attached files.

    Example:
        >>> labels = {"client.campaign": "spring", "user": "ann", "task": "t-48"}
        >>> words_of_callers(Episode(episode_id="e1", request="Hi", metadata=labels))
        ('campaign', 'spring', 'ann')
    """
    found = [episode.session_id or ""]
    for name, text in episode.metadata.items():
        if name not in _OWN and text != ANONYMOUS:
            found += [name.removeprefix(_CLIENT) if name.startswith(_CLIENT) else "", text]
    for medium in episode.media:
        is_text = medium.kind == "file" and medium.data is not None
        found += [medium.name, (medium.data or b"").decode("utf-8", "replace") if is_text else ""]
    return tuple(dict.fromkeys(filter(None, found)))


def is_imported(metadata: Mapping[str, str]) -> bool:
    """Whether a record came in a file, and so may have been written by anybody.

    Example:
        >>> is_imported({"imported": "episodes.jsonl"}), is_imported({"user": "ann"})
        (True, False)
    """
    return IMPORTED in metadata


def begins_a_conversation(episode: Episode) -> bool:
    """Whether nothing was said before a run, as far as its record can tell.

    A run that another agent asked for, and a call of a client over MCP, go on from what was said
    there. Nobody asked for a probe: it gives what errors of other probes asked for.

    Example:
        >>> begins_a_conversation(Episode(episode_id="e1", request="Hi"))
        True
        >>> begins_a_conversation(Episode(episode_id="e2", request="", metadata={"source": "mcp"}))
        False
    """
    labels = episode.metadata
    is_asked_inside = CONVERSATION in labels or labels.get(SOURCE) == OVER_MCP
    return not (episode.history_length or is_asked_inside or PROBE_OF in labels)


def as_imported(episode: Episode, source: str) -> Episode:
    """The episode with the label that it came from a file, whatever the file says.

    It takes no place among what users of ours said.
    """
    labels = {**episode.metadata, IMPORTED: source}
    session = episode.session_id
    if session is not None and session.startswith(FEEDBACK_SHELF):
        session = None
    return replace(episode, session_id=session, metadata=labels)


def as_own(episode: Episode) -> Episode:
    """An imported episode that somebody vouches for; the label is gone."""
    labels = {name: text for name, text in episode.metadata.items() if name != IMPORTED}
    return replace(episode, metadata=labels)


def is_extra_record(metadata: Mapping[str, str]) -> bool:
    """Whether a record tells of something that no user saw, or that another record tells too.

    Such records belong to no conversation; code that learns from episodes skips them.

    Example:
        >>> is_extra_record({"shadow_of": "e1"}), is_extra_record({"arm": "control"})
        (True, False)
    """
    return SHADOW_OF in metadata or VIEW_OF in metadata


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
    Turn: ("message", "results", "retrieval", "searches", "refine", "program_calls"),
    ProgramCall: ("call", "result"),
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
"""Fields that hold names of tools."""


def is_late_verdict(record: Episode) -> bool:
    """Whether a record is a verdict that was kept beside its episode, and nothing more.

    Such a record names the episode by its label ``view_of`` and has no turns
    (``agentkit.evolution.serving.judged`` makes it). A side of a shadow run has that label too, but
    turns of its own, and its verdict is about these alone. What was imported speaks for no user.
    """
    labels = record.metadata
    is_feedback = record.verdict is not None and not record.turns and not is_imported(labels)
    return is_feedback and VIEW_OF in labels and SHADOW_OF not in labels


def with_late_verdicts(episodes: Iterable[Episode]) -> tuple[Episode, ...]:
    """The episodes that users saw, each once and with the latest verdict that it was given.

    Verdicts are put in order by the ids of their records, which begin with the time at which they
    were made. One that has a fault says nothing, so it does not take the place of one that has
    none. A diagnosis that was made for the other outcome is left out: it explained a failure that
    was none, or none that was one.

    Gates read what was said first (``canary_scores``), since they have to stand by what they
    decided; who learns reads what was said last.

    Args:
        episodes: Episodes and verdicts beside them, in any order. Verdicts of episodes that are not
            among them are left out, as are shadow runs, views and whatever was imported.

    Returns:
        The episodes in the order in which they came.

    Example:
        >>> from agentkit.episodes import Episode, Verdict
        >>> episode = Episode(episode_id="e1", request="Hi")
        >>> passed = Verdict(passed=True)
        >>> thumb = Episode(
        ...     episode_id="e2", request="Hi", verdict=passed, metadata={"view_of": "e1"}
        ... )
        >>> [(one.episode_id, one.verdict.passed) for one in with_late_verdicts([thumb, episode])]
        [('e1', True)]
    """
    own = tuple(one for one in episodes if not is_imported(one.metadata))
    served = {one.episode_id: one for one in reversed(own) if not is_extra_record(one.metadata)}
    late = {one.episode_id: one for one in own if is_late_verdict(one)}
    latest: dict[str, Verdict] = {}
    for record_id in sorted(late):
        judged, verdict = _judged(record_id, late), late[record_id].verdict
        if verdict is not None and (verdict.fault is None or judged not in latest):
            latest[judged] = verdict
    ids = dict.fromkeys(one.episode_id for one in own)
    return tuple(_as_judged(served[one], latest.get(one)) for one in ids if one in served)


def _judged(record_id: str, late: Mapping[str, Episode]) -> str:
    """The id of the episode that a verdict is about, also where it was given to a verdict."""
    seen: set[str] = set()
    while record_id in late and record_id not in seen:
        seen.add(record_id)
        record_id = late[record_id].metadata[VIEW_OF]
    return record_id


def _as_judged(episode: Episode, verdict: Verdict | None) -> Episode:
    before = episode.verdict
    if verdict is None or (before is not None and before.fault is None and verdict.fault):
        return episode
    same = before is not None and (before.passed, before.fault) == (verdict.passed, verdict.fault)
    return replace(episode, verdict=verdict, diagnosis=episode.diagnosis if same else None)


def witness(metadata: Mapping[str, str]) -> str:
    """Which client of a server with several a run came from; empty where users can be told apart.

    The one client of a server is the application in front of it, which knows its users. Of several
    clients each could name users as it likes, and without keys anybody could.
    """
    keyless = REQUEST_LABEL in metadata and KEY_LABEL not in metadata
    return metadata.get(WITNESS, ANONYMOUS if keyless else "")
