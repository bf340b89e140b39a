"""A verdict on calls that nobody ran, from what really happened to the calls of the run itself.

Without a verifier there is one kind of evidence: which calls of the answered run worked. A side of
a shadow run agrees with it at a request when it makes calls where the run made some, and each of
them is valid and the same as one that worked in the run, at that point or later; or when both
answer without a call.

What such a verdict can show: a candidate that proposes at once what the run found only after
failures; and one that proposes calls which break the contract or a rule. What it can not show: that
calls which worked were the right ones, nor that another valid call would have worked as well, which
counts against the candidate here. So it is stricter with the candidate than with the control: a
gain that it shows is one, a loss may be none. Sampling at a high temperature makes it stricter
still. For anything more, give a verifier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentkit.episodes import Episode, Evidence, EvidenceKind, Turn, Verdict
from agentkit.messages import ToolCall
from agentkit.metrics.calls import CanonicalCall, canonical_calls
from agentkit.tools.definition import ToolDefinition

NAME = "shadow_agreement"
"""The verifier's name in verdicts."""


def agreement(
    side: Sequence[Turn],
    places: Sequence[int],
    original: Episode,
    definitions: Iterable[ToolDefinition],
) -> Verdict:
    """Whether one side of a shadow run agrees with what worked.

    Args:
        side: Its turns, with calls that were checked and not run.
        places: Which turn of the original each of them repeats.
        original: The run as it was answered.
        definitions: The tools.

    Returns:
        The verdict. It has a ``fault`` when a call of the original, at one of the places, waits for
        somebody or was denied: then nobody knows.
    """
    known = tuple(definitions)
    for place in places:
        if any(one.status in {"denied", "deferred"} for one in original.turns[place].results):
            reason = f"a call in turn {place} of {original.episode_id} was not carried out"
            unknown = Evidence(kind="gold_error", message=reason)
            return Verdict(passed=False, evidence=(unknown,), verifier=NAME, fault="gold_error")
    evidence = tuple(
        found
        for index, (turn, place) in enumerate(zip(side, places, strict=True))
        for found in _disagreements(index, turn, original.turns[place:], known)
    )
    passed = not evidence
    return Verdict(passed=passed, score=float(passed), evidence=evidence, verifier=NAME)


def _disagreements(
    index: int, turn: Turn, rest: Sequence[Turn], definitions: tuple[ToolDefinition, ...]
) -> list[Evidence]:
    """What at one request is not as it worked.

    Args:
        index: Index of the turn on its side.
        turn: What was answered.
        rest: The original from the same request on.
        definitions: The tools.
    """
    calls = turn.message.tool_calls
    if not calls and rest[0].message.tool_calls:
        message = "answered without a call, where the run made some"
        return [Evidence(kind="missing_call", message=message, turn=index)]
    worked = set() if not rest[0].message.tool_calls else _worked(rest, definitions)
    failures = {result.call_id: result.failure for result in turn.results}
    found = []
    for call in calls:
        failure = failures.get(call.call_id)
        if failure is not None and failure.kind != "denied":
            found.append(_evidence("call_failed", f"{call.name}: {failure.rule}", index, call))
        elif _canonical(call, definitions) not in worked:
            message = f"{call.name}: no such call worked in the run"
            found.append(_evidence("unexpected_call", message, index, call))
    return found


def _worked(turns: Iterable[Turn], definitions: tuple[ToolDefinition, ...]) -> set[CanonicalCall]:
    return {
        _canonical(call, definitions)
        for turn in turns
        for call in turn.message.tool_calls
        if any(one.call_id == call.call_id and one.status == "ok" for one in turn.results)
    }


def _canonical(call: ToolCall, definitions: tuple[ToolDefinition, ...]) -> CanonicalCall:
    return canonical_calls([call], definitions)[0]


def _evidence(kind: EvidenceKind, message: str, turn: int, call: ToolCall) -> Evidence:
    return Evidence(kind=kind, message=message, turn=turn, call_id=call.call_id, tool=call.name)
