"""What became of each failed call, over the turns of an episode and of a conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agentkit.diagnosis.findings import Finding, Step
from agentkit.episodes import Episode, Evidence, Recovery, RecoveryOutcome
from agentkit.episodes.diagnosis import PENDING
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
        _carried(recovery, steps, library)
        for recovery in pending
        if recovery.outcome in PENDING and recovery.episode != episode.episode_id
    ]
    own = [
        _recovery(episode, step, step.failure, steps, library)
        for turn in steps
        for step in turn
        if step.failure is not None
    ]
    return (*carried, *own)


def recovery_findings(
    episode: Episode, found: Sequence[Recovery], steps: Steps
) -> Iterator[Finding]:
    """The turns on which the model did not recover; to be asked of a failed episode only.

    A call that failed again or was repeated counts at the turn that did so. Giving up counts at the
    turn after the failure, unless the model was told not to try again: doing what one is told is
    no failure.
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


def _recovery(
    episode: Episode, step: Step, failure: ToolFailure, steps: Steps, library: Library
) -> Recovery:
    opened = Recovery(
        turn=step.turn,
        call_id=step.call.call_id,
        tool=step.call.name,
        kind=failure.kind,
        outcome="open",
        episode=episode.episode_id,
        arguments=_digest(step.call, library),
    )
    names = {step.call.name, *(failure.nearest if failure.kind == "unknown_tool" else ())}
    return _settled(opened, names, steps, library, after=step.turn)


def _carried(recovery: Recovery, steps: Steps, library: Library) -> Recovery:
    """A pending failure after one more episode, in which the user may have left the matter."""
    tried = any(step.call.name == recovery.tool for turn in steps for step in turn)
    return _settled(recovery, {recovery.tool}, steps, library, after=-1) if tried else recovery


def _settled(
    recovery: Recovery, names: set[str], steps: Steps, library: Library, *, after: int
) -> Recovery:
    """The first later turn that calls the tool decides; if none does, what else was called."""
    replaced: int | None = None
    for turn, made in enumerate(steps[after + 1 :], after + 1):
        again = [step for step in made if step.call.name in names]
        if again:
            return replace(recovery, outcome=_outcome(recovery, again, library), ended=turn)
        if replaced is None and any(step.has_run for step in made):
            replaced = turn
    if replaced is not None:
        return replace(recovery, outcome="replaced", ended=replaced)
    reacted = after + 1 < len(steps)
    return replace(recovery, outcome="abandoned") if reacted else recovery


def _outcome(recovery: Recovery, again: Sequence[Step], library: Library) -> RecoveryOutcome:
    if any(step.failure is None for step in again):
        return "recovered"
    digests = {_digest(step.call, library) for step in again} - {""}
    return "repeated" if recovery.arguments in digests else "failed_again"


def _again(recovery: Recovery, made: Sequence[Step]) -> ToolCall | None:
    """The call that failed again; None when there was none."""
    return next((step.call for step in made if step.call.name == recovery.tool), None)


def _digest(call: ToolCall, library: Library) -> str:
    """What tells calls of one tool apart, short enough for a record; empty when nothing does."""
    tool = library.get(call.name)
    try:
        canonical = canonical_calls([call], [] if tool is None else [tool.definition])[0]
    except (RecursionError, TypeError, ValueError):  # no JSON: it counts as unlike any other
        return ""
    return hashlib.sha256(canonical.arguments.encode("utf-8", "replace")).hexdigest()[:16]
