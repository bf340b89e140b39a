"""From the evidence of a verdict to labels of turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentkit.diagnosis.findings import BROKEN_OFF, Finding, Step
from agentkit.diagnosis.labels import LABEL_OF_EVIDENCE
from agentkit.episodes import Episode, Evidence, FailureLabel
from agentkit.library.library import Library
from agentkit.messages import JsonObject

_OF_THE_STATE = frozenset({"state_differs", "response_differs"})


@dataclass(kw_only=True)
class VerdictReader:
    """Finds the turn that each finding of a verifier is about.

    Attributes:
        episode: The episode.
        steps: Its calls, turn by turn.
        library: The tools that it ran with.
        states: The state before each turn and after the last one, when that is known.
    """

    episode: Episode
    steps: Sequence[tuple[Step, ...]]
    library: Library
    states: Sequence[JsonObject] = ()
    _steps: Mapping[str, Step] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = {step.call.call_id: step for turn in self.steps for step in turn}

    def findings(self, evidence: Sequence[Evidence]) -> Iterator[Finding]:
        """The labels that a verifier's findings stand for, and the turns they belong to."""
        for item in evidence:
            if self._is_about_the_agent(item):
                yield from self._of(item)

    def _is_about_the_agent(self, item: Evidence) -> bool:
        """What was left undone says nothing when the run was broken off from outside."""
        return item.call_id in self._steps or self.episode.stop_reason not in BROKEN_OFF

    def _of(self, item: Evidence) -> Iterator[Finding]:
        step = self._steps.get(item.call_id)
        at = step.turn if step else None
        if step is None and item.turn is not None and 0 <= item.turn < len(self.steps):
            at = item.turn
        if item.kind == "wrong_tool":
            yield from self._wrong_tool(item, at)
        elif item.kind in _OF_THE_STATE:
            yield self._of_the_state(item, at)
        else:
            yield self._finding(LABEL_OF_EVIDENCE[item.kind], item, at)

    def _finding(self, label: FailureLabel, item: Evidence, at: int | None) -> Finding:
        step = self._steps.get(item.call_id)
        called = step.call.name if step else ""
        is_missing = label == "missing_tool_call"
        return Finding(
            turn=len(self.steps) - 1 if at is None else at,
            label=label,
            evidence=item,
            tool=item.tool if is_missing and item.tool != called else called or item.tool,
            parameter=item.parameter if label == "argument_mismatch" else "",
            call=step.call if step and not is_missing else None,
        )

    def _wrong_tool(self, item: Evidence, at: int | None) -> Iterator[Finding]:
        """A call that should not have been made, in the place of one that should have been."""
        yield self._finding("spurious_tool_call", item, at)
        yield self._finding("missing_tool_call", item, at)

    def _of_the_state(self, item: Evidence, at: int | None) -> Finding:
        ran = [step for turn in self.steps for step in turn if step.has_run]
        if item.kind == "response_differs" and item.tool:
            ran = [step for step in ran if step.call.name == item.tool]
        if not ran:  # nothing was done that could have had the wrong effect
            return self._finding("missing_tool_call", item, at)
        if at is None and item.kind == "state_differs":
            at = self._without_effect(ran)
        turn = ran[-1].turn if at is None else at
        there = [step.call for step in ran if step.turn == turn]
        found = self._finding("state_mismatch", item, turn)
        if found.call is not None or len(there) != 1:
            return found
        return replace(found, call=there[0], tool=there[0].name)

    def _without_effect(self, ran: Sequence[Step]) -> int | None:
        """The last turn that wrote in vain, else the last that changed the state."""
        if len(self.states) != len(self.steps) + 1:
            return None
        changed = [a != b for a, b in zip(self.states, self.states[1:], strict=False)]
        writing = [step.turn for step in ran if self._writes(step.call.name)]
        in_vain = [turn for turn in writing if not changed[turn]]
        effective = [step.turn for step in ran if changed[step.turn]]
        return next(iter((in_vain or effective)[-1:]), None)

    def _writes(self, name: str) -> bool:
        tool = self.library.get(name)
        return tool is not None and tool.definition.signature.effects.writes is True
