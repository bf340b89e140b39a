"""The outcome of each failed call, over the turns of an episode and of a conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agentkit.diagnosis.findings import Finding, Step
from agentkit.episodes import Episode, Evidence, Recovery, RecoveryOutcome
from agentkit.episodes.verdict import PENDING
from agentkit.library.library import Library
from agentkit.messages import ToolCall, ToolFailure
from agentkit.metrics.calls import canonical_calls

Steps = Sequence[tuple[Step, ...]]
"""The calls of an episode, turn by turn."""


def recoveries(
    episode: Episode, steps: Steps, library: Library, pending: Sequence[Recovery]
) -> tuple[Recovery, ...]:
    """What the model did about each failed call, the pending ones of earlier episodes first.

    Args:
        episode: The episode.
        steps: Its calls.
        library: The tools that it ran with.
        pending: Failed calls of earlier episodes of the conversation that are still open.
    """
    carried = [
        _carried(one, steps, library)
        for one in pending
        if one.outcome in PENDING and one.episode != episode.episode_id
    ]
    own = [
        _followed(step, step.failure, episode.episode_id, steps, library)
        for turn in steps
        for step in turn
        if step.failure is not None
    ]
    return (*carried, *own)


def _followed(
    step: Step, failure: ToolFailure, episode_id: str, steps: Steps, library: Library
) -> Recovery:
    """What the model did about a failed call of this episode."""
    name = step.call.name
    names = {name, *(failure.nearest if failure.kind == "unknown_tool" else ())}
    arguments = _digest(step.call, library)
    outcome, ended = _outcome(names, (name, arguments), steps, library, after=step.turn)
    return Recovery(
        turn=step.turn,
        call_id=step.call.call_id,
        tool=name,
        kind=failure.kind,
        outcome=outcome,
        ended=ended,
        episode=episode_id,
        arguments=arguments if outcome in PENDING else "",
    )


def _carried(recovery: Recovery, steps: Steps, library: Library) -> Recovery:
    """A pending failure after this episode, in which the user may have left the matter."""
    failed = (recovery.tool, recovery.arguments)
    outcome, ended = _outcome({recovery.tool}, failed, steps, library, after=-1)
    if outcome in {*PENDING, "replaced"}:
        return recovery
    return replace(recovery, outcome=outcome, ended=ended, arguments="")


def _outcome(
    names: set[str], failed: tuple[str, str], steps: Steps, library: Library, *, after: int
) -> tuple[RecoveryOutcome, int | None]:
    """The reaction to a failed call after a turn, and the turn that settled it."""
    replaced: int | None = None
    for turn in range(after + 1, len(steps)):
        again = [step for step in steps[turn] if step.call.name in names]
        if any(step.failure is None for step in again):
            return "recovered", turn
        if again:
            made = {(step.call.name, _digest(step.call, library)) for step in again}
            is_same = failed[1] != "" and failed in made
            return "repeated" if is_same else "failed_again", turn
        if replaced is None and any(step.has_run for step in steps[turn]):
            replaced = turn
    if replaced is not None:
        return "replaced", replaced
    return "abandoned" if after + 1 < len(steps) else "open", None


def _digest(call: ToolCall, library: Library) -> str:
    """A short key that distinguishes calls of one tool; empty for invalid JSON."""
    tool = library.get(call.name)
    definitions = [] if tool is None else [tool.definition]
    try:
        text = canonical_calls([call], definitions)[0].arguments
    except (RecursionError, TypeError, ValueError):
        return ""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16] if text else ""


def recovery_findings(
    episode: Episode, found: Sequence[Recovery], steps: Steps
) -> Iterator[Finding]:
    """The turns on which the model did not recover, in a failed episode.

    A call that failed again or was repeated counts at the turn that did so. Giving up counts at the
    turn after the failure, unless the model was asked not to try again: obeying is not a failure.
    """
    failures = {step.call.call_id: step.failure for turn in steps for step in turn if step.failure}
    for recovery in found:
        turn = recovery.ended
        if recovery.outcome == "abandoned" and recovery.episode == episode.episode_id:
            failure = failures.get(recovery.call_id)
            turn = recovery.turn + 1 if failure is not None and failure.retryable else None
        elif recovery.outcome not in {"repeated", "failed_again"}:
            turn = None
        if turn is not None:
            again = _again(recovery, steps[turn])
            evidence = Evidence(
                kind="not_recovered",
                message=_SENTENCES[recovery.outcome].format(tool=recovery.tool),
                turn=turn,
                call_id="" if again is None else again.call_id,
                tool=recovery.tool,
            )
            yield Finding(
                turn=turn,
                label="recovery_failure",
                evidence=evidence,
                tool=recovery.tool,
                call=again,
            )


_SENTENCES: dict[RecoveryOutcome, str] = {
    "repeated": "{tool} had failed, and the same call was made again",
    "failed_again": "{tool} had failed, and the next try failed as well",
    "abandoned": "{tool} had failed, and there was no further try",
}


def _again(recovery: Recovery, made: Sequence[Step]) -> ToolCall | None:
    """The call that failed again; None when there was none."""
    return next((step.call for step in made if step.call.name == recovery.tool), None)
