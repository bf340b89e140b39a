"""What became of each failed call, over the turns of an episode and of a conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
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
    chain = _Chain(steps, library)
    carried = [
        chain.carried(recovery)
        for recovery in pending
        if recovery.outcome in PENDING and recovery.episode != episode.episode_id
    ]
    own = [
        chain.followed(step, step.failure, episode.episode_id)
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


def _again(recovery: Recovery, made: Sequence[Step]) -> ToolCall | None:
    """The call that failed again; None when there was none."""
    return next((step.call for step in made if step.call.name == recovery.tool), None)


class _Chain:
    """The calls of one episode, and what follows on each failure among them."""

    def __init__(self, steps: Steps, library: Library) -> None:
        self._steps = steps
        self._library = library
        self._canonical: dict[int, str] = {}  # by id of the call; the steps keep the calls alive

    def followed(self, step: Step, failure: ToolFailure, episode_id: str) -> Recovery:
        """What the model did about a failed call of this episode."""
        names = {step.call.name, *(failure.nearest if failure.kind == "unknown_tool" else ())}
        again, outcome, ended = self._next(names, after=step.turn)
        if again:
            outcome = self._outcome(again, lambda other: self._is_same(step.call, other))
        return Recovery(
            turn=step.turn,
            call_id=step.call.call_id,
            tool=step.call.name,
            kind=failure.kind,
            outcome=outcome,
            ended=ended,
            episode=episode_id,
            arguments=self._digest(step.call) if outcome in PENDING else "",
        )

    def carried(self, recovery: Recovery) -> Recovery:
        """A pending failure after this episode, in which the user may have left the matter."""
        again, _, ended = self._next({recovery.tool}, after=-1)
        if not again:
            return recovery
        known = recovery.arguments
        outcome = self._outcome(again, lambda other: known != "" and known == self._digest(other))
        return replace(
            recovery, outcome=outcome, ended=ended, arguments=known if outcome in PENDING else ""
        )

    def _next(
        self, names: set[str], *, after: int
    ) -> tuple[list[Step], RecoveryOutcome, int | None]:
        """The first later calls of the tool, if any, and what was done otherwise."""
        replaced: int | None = None
        for turn in range(after + 1, len(self._steps)):
            made = self._steps[turn]
            again = [step for step in made if step.call.name in names]
            if again:
                return again, "recovered", turn
            if replaced is None and any(step.has_run for step in made):
                replaced = turn
        if replaced is not None:
            return [], "replaced", replaced
        return [], "abandoned" if after + 1 < len(self._steps) else "open", None

    def _outcome(
        self, again: Sequence[Step], is_same: Callable[[ToolCall], bool]
    ) -> RecoveryOutcome:
        if any(step.failure is None for step in again):
            return "recovered"
        return "repeated" if any(is_same(step.call) for step in again) else "failed_again"

    def _is_same(self, call: ToolCall, other: ToolCall) -> bool:
        """Whether two calls mean the same; both name the tool, or one a misspelling of it."""
        if call.name != other.name:
            return False
        try:
            if call.arguments == other.arguments and call.malformed == other.malformed:
                return True
        except RecursionError:  # nested too deeply to be compared in any form
            return False
        text = self._text(call)
        return text != "" and text == self._text(other)

    def _digest(self, call: ToolCall) -> str:
        """What tells calls of one tool apart, short enough for a record; empty for no JSON."""
        text = self._text(call)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16] if text else ""

    def _text(self, call: ToolCall) -> str:
        """The canonical arguments as text; empty when they are no JSON, which is like nothing."""
        known = self._canonical.get(id(call))
        if known is None:
            tool = self._library.get(call.name)
            definitions = [] if tool is None else [tool.definition]
            try:
                known = canonical_calls([call], definitions)[0].arguments
            except (RecursionError, TypeError, ValueError):
                known = ""
            self._canonical[id(call)] = known
        return known
