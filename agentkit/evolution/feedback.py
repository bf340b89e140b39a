"""What users say of an answer, kept as a late verdict beside its episode.

What a user writes is a stranger's text. It is kept with the word where it came from, it is among
the texts that a candidate must not copy from (``source_texts``), and nothing puts it in front of a
model: proposers read the corrected call, value by value, which the checks on values of episodes
(``generalising``) keep out of descriptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.agent.session import new_episode_id
from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.episodes.labels import VIEW_OF, is_late_verdict
from agentkit.library.store import EpisodeFilter, EpisodeStore
from agentkit.messages import JsonObject, ToolCall
from agentkit.tools.canonical import canonical_json

FEEDBACK = "feedback"
"""The verifier's name in verdicts that users gave."""

_PASSING = 0.5
_MOST_READ = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class UserFeedback:
    """What a user says of one answer.

    Attributes:
        rating: How good it was, from 0 to 1; a thumb is 0 or 1.
        reason: Why, in the user's words.
        corrected_tool: The tool that should have been called; empty when the user names none.
        corrected_arguments: What it should have been called with.
        sender: Who sent it: the name of the key; empty where there are no keys.
    """

    rating: float
    reason: str = ""
    corrected_tool: str = ""
    corrected_arguments: JsonObject | None = None
    sender: str = ""


def keep_feedback(store: EpisodeStore, episode: Episode, given: UserFeedback) -> Episode:
    """Keep feedback beside its episode; the same said again at once is one record.

    Args:
        store: Where the episode is.
        episode: What the user saw.
        given: What the user says of it.

    Returns:
        The record: a late verdict (``with_late_verdicts``), which the next round learns from.
    """
    verdict = _verdict(episode, given)
    known = next(feedback_on(store, episode.episode_id), None)
    if known is not None and known.verdict == verdict:
        return known
    labels = {VIEW_OF: episode.episode_id, "source": FEEDBACK}
    record = Episode(
        episode_id=new_episode_id(),
        request=episode.request,
        model=episode.model,
        library_version=episode.library_version,
        session_id=_shelf(episode.episode_id),
        started_at=episode.started_at,
        verdict=verdict,
        metadata=labels | ({"key": given.sender} if given.sender else {}),
    )
    store.append(record)
    return record


def feedback_on(store: EpisodeStore, episode_id: str) -> Iterator[Episode]:
    """The records of what users said of an episode, the newest first."""
    kept = store.select(EpisodeFilter(session_id=_shelf(episode_id), limit=_MOST_READ))
    return (one for one in kept if is_late_verdict(one) and one.metadata[VIEW_OF] == episode_id)


def is_by_user(verdict: Verdict | None) -> bool:
    """Whether a user gave a verdict, of whom nothing is known but the key."""
    return verdict is not None and verdict.verifier == FEEDBACK


def user_texts(verdict: Verdict | None) -> Iterator[str]:
    """What a user wrote into a verdict; nothing for one that a verifier gave."""
    if verdict is not None and is_by_user(verdict):
        yield str(verdict.details.get("reason", ""))


def _shelf(episode_id: str) -> str:
    """The conversation under which feedback is filed, so that an index finds it."""
    return f"{FEEDBACK}/{episode_id}"


def _verdict(episode: Episode, given: UserFeedback) -> Verdict:
    passed = given.rating >= _PASSING
    said = f"a user, key {given.sender!r}" if given.sender else "a user"
    details: dict[str, Any] = {"source": said}
    if given.reason:
        details["reason"] = given.reason
    if given.corrected_tool:
        corrected = {"name": given.corrected_tool, "arguments": given.corrected_arguments or {}}
        details["corrected_call"] = corrected
    evidence = () if passed else tuple(_evidence(episode, given, said))
    return Verdict(
        passed=passed, score=given.rating, evidence=evidence, verifier=FEEDBACK, details=details
    )


def _evidence(episode: Episode, given: UserFeedback, said: str) -> Iterator[Evidence]:
    """What was wrong, as a verifier would tell it from the call that was due."""
    if not given.corrected_tool:
        yield Evidence(kind="criterion_failed", message=f"{said} turned the answer down")
        return
    due = given.corrected_tool
    made = [(at, call) for at, turn in enumerate(episode.turns) for call in turn.message.tool_calls]
    same = [one for one in made if one[1].name == due]
    if same:
        turn, call = same[-1]
        yield from _differences(call, given.corrected_arguments or {}, turn, said)
        return
    if made:
        turn, call = made[-1]
        message = f"{said} says that {due} was due in place of {call.name}"
        yield Evidence(
            kind="wrong_tool",
            message=message,
            turn=turn,
            call_id=call.call_id,
            tool=due,
            expected=due,
            actual=call.name,
        )
        return
    yield Evidence(kind="missing_call", message=f"{said} says that {due} was due", tool=due)


def _differences(
    call: ToolCall, due: Mapping[str, Any], turn: int, said: str
) -> Iterator[Evidence]:
    given = call.arguments
    for name in dict.fromkeys((*due, *given)):
        if name in due and name in given and _text(due[name]) == _text(given[name]):
            continue
        yield Evidence(
            kind="missing_argument"
            if name not in given
            else "unexpected_argument"
            if name not in due
            else "wrong_value",
            message=f"{said} corrected {name}",
            turn=turn,
            call_id=call.call_id,
            tool=call.name,
            parameter=name,
            expected=due.get(name),
            actual=given.get(name),
        )


def _text(value: Any) -> bytes:
    return canonical_json(value)
