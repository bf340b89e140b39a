"""``diagnose``: why an episode failed, turn by turn, by rules over executable evidence.

SEAL, section 3.2 and appendix C.2. No model is asked and nothing is run: the same episode and the
same verdict give the same diagnosis. ``docs/diagnosis.md`` holds the table of decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentkit.diagnosis.findings import (
    BROKEN_OFF,
    Finding,
    Step,
    executable_findings,
    recoveries,
    recovery_findings,
    steps_of,
)
from agentkit.diagnosis.labels import (
    LABEL_OF_EVIDENCE,
    OUTSIDE,
    breaks_learned_rule,
    dominant,
    ranked,
)
from agentkit.episodes import (
    Diagnosis,
    Episode,
    Evidence,
    EvidenceKind,
    FailureLabel,
    Recovery,
    TurnDiagnosis,
    Verdict,
)
from agentkit.library.library import Library
from agentkit.messages import FailureKind, JsonObject, ToolCall


def diagnose(
    episode: Episode,
    library: Library,
    verdict: Verdict | None,
    *,
    pending: Sequence[Recovery] = (),
    states: Sequence[JsonObject] = (),
) -> Diagnosis:
    """Why an episode failed, or that it did not.

    Args:
        episode: What happened.
        library: The tools that the episode ran with.
        verdict: What a verifier found; None when nobody judged the episode. Then only executable
            failures are labelled, and all else is ``unjudged``: that nothing is known to be wrong
            does not make it right.
        pending: ``Diagnosis.pending`` of the episode before this one in the same conversation.
        states: What could be observed of the environment before each turn and after the last one,
            if somebody looked. It tells which turn a wrong final state belongs to.

    Returns:
        A label for each turn and for the episode. A verdict with a fault of its own gives
        ``gold_error`` or ``checker_error`` for the episode.

    Example:
        >>> from agentkit.messages import AssistantMessage, ToolCall
        >>> from agentkit.episodes import Turn
        >>> from agentkit.testing import sample_library
        >>> call = ToolCall(call_id="1", name="get_wether")
        >>> turn = Turn(message=AssistantMessage(tool_calls=(call,)))
        >>> episode = Episode(episode_id="e", request="Warm in Oslo?", turns=(turn,))
        >>> found = diagnose(episode, sample_library(), None)
        >>> found.label, found.turns[0].tool
        ('invalid_tool_call', 'get_wether')
    """
    steps = steps_of(episode, library)
    found = recoveries(episode, steps, library, pending)
    findings = list(executable_findings(episode, steps, library))
    fault = _fault(verdict)
    if verdict is not None and fault is None and not verdict.passed:
        findings += VerdictReader(
            episode=episode, steps=steps, library=library, states=states
        ).findings(verdict.evidence)
        findings += recovery_findings(episode, found, steps)
        findings += _unexplained(episode, findings)
    innocent = _innocent(episode, library, verdict, findings)
    turns = tuple(
        _turn(index, [one for one in findings if one.turn == index], innocent, library)
        for index in range(len(episode.turns))
    )
    decisive = _unrecovered(findings, found) if verdict is None else findings
    label = fault or _label(verdict, decisive, innocent)
    return Diagnosis(label=label, turns=turns, recoveries=found)


def _fault(verdict: Verdict | None) -> FailureLabel | None:
    """Why the verdict says nothing about the agent; None when it does."""
    if verdict is None:
        return None
    if verdict.fault is not None:
        return verdict.fault
    kinds = {item.kind for item in verdict.evidence}
    return next((label for label in sorted(OUTSIDE) if label in kinds), None)


def _unexplained(episode: Episode, findings: Sequence[Finding]) -> list[Finding]:
    """The label of a failed episode against which nothing particular was found."""
    last = len(episode.turns) - 1
    if findings or last < 0 or episode.stop_reason in BROKEN_OFF:
        return []
    message = episode.turns[last].message
    is_silent = not message.text and not episode.calls
    label: FailureLabel = "missing_tool_call" if is_silent else "response_mismatch"
    evidence = Evidence(kind="other", message="the verifier does not say what is wrong", turn=last)
    return [Finding(turn=last, label=label, evidence=evidence)]


def _innocent(
    episode: Episode, library: Library, verdict: Verdict | None, findings: Sequence[Finding]
) -> FailureLabel:
    """The label of a turn without evidence against it."""
    if verdict is None or _fault(verdict) is not None:
        return "unjudged"
    if not verdict.passed:
        return "unjudged" if episode.stop_reason in BROKEN_OFF else "pass"
    is_abstention = not findings and not episode.calls and _offers_tools(episode, library)
    return "correct_abstention" if is_abstention else "pass"


def _offers_tools(episode: Episode, library: Library) -> bool:
    retrieval = episode.turns[0].retrieval if episode.turns else None
    return len(library) > 0 if retrieval is None else bool(retrieval.offered or retrieval.cards)


def _label(
    verdict: Verdict | None, findings: Sequence[Finding], innocent: FailureLabel
) -> FailureLabel:
    """The label of the episode, when it has a right to one."""
    if verdict is not None and verdict.passed:
        return innocent
    if findings:
        return dominant(finding.label for finding in findings)
    return "response_mismatch" if innocent == "pass" else innocent


def _unrecovered(findings: Sequence[Finding], found: Sequence[Recovery]) -> list[Finding]:
    """The final outcome of an unjudged episode: recovered failures decide nothing."""
    recovered = {one.call_id for one in found if one.outcome in {"recovered", "replaced"}}
    return [
        finding
        for finding in findings
        if finding.is_final and (finding.call is None or finding.call.call_id not in recovered)
    ]


def _turn(
    index: int, findings: Sequence[Finding], innocent: FailureLabel, library: Library
) -> TurnDiagnosis:
    if not findings:
        return TurnDiagnosis(turn=index, label=innocent, labels=(innocent,))
    labels = ranked(finding.label for finding in findings)
    ordered = sorted(findings, key=lambda finding: labels.index(finding.label))
    first = ordered[0]
    evidence = {id(finding.evidence): finding.evidence for finding in ordered}
    return TurnDiagnosis(
        turn=index,
        label=first.label,
        labels=labels,
        tool=first.tool,
        parameter=first.parameter,
        evidence=tuple(evidence.values()),
        hint=repair_hint(ordered, library),
        attributions=tuple(dict.fromkeys(finding.attribution for finding in ordered)),
    )


_LONGEST_NAME = 100  # a name that a model made up can be of any length
_MOST_NAMED = 5

_BY_RULE = (
    "Keep {argument} of {tool} to what its description says; the refusal names the rule and what "
    "is allowed."
)
"""A call that a learned rule of the tool refused: the description already holds the rule."""

_HINTS: Mapping[FailureKind | EvidenceKind | FailureLabel, str] = {
    # of a failed call
    "malformed_arguments": "Write the arguments of {tool} as one complete JSON object.",
    "unknown_tool": "Call only tools that are offered, by their exact names; {tool} is none.",
    "contract_violated": "Choose arguments of {tool} that keep its precondition.",
    "retry_requested": "Change the call of {tool} as its answer says.",
    "tool_error": "Check {argument} of {tool} against what the tool knows.",
    # of what was found about a call
    "missing_argument": "Give {argument} in the call of {tool}.",
    "unexpected_argument": "Leave {argument} out of the call of {tool}.",
    "wrong_type": "Give {argument} of {tool} in the type that the schema declares.",
    "wrong_value": "Take {argument} of {tool} from the request or an earlier result.",
    # of a turn
    "invalid_tool_call": "Make the call through the interface for calls, not as text.",
    "argument_mismatch": "Check {argument} of {tool} against the schema and the request.",
    "state_mismatch": "The calls ran without the effect that was asked for: check order and steps.",
    "recovery_failure": "After the error of {tool}, do what its rule says instead of repeating.",
    "spurious_tool_call": "Do not call {tool} here.",
    "missing_tool_call": "Before answering, call the tools that the request still needs.",
    "response_mismatch": "Build the answer on the results of the calls, in the form asked for.",
}


def repair_hint(findings: Sequence[Finding], library: Library) -> str:
    """A repair hint that reveals nothing of the gold.

    Args:
        findings: The findings of a turn, the dominant one first. The hint is about that one, and
            about what else is wrong with the same call in the same way.
        library: The tools that were offered.
    """
    first = findings[0]
    template = _template(first)
    alike = [one for one in findings if one.call is first.call and _template(one) == template]
    names = dict.fromkeys(finding.parameter for finding in alike)
    tool = "the tool" if first.call is None else first.call.name[:_LONGEST_NAME]
    return template.format(tool=tool, argument=_arguments(first.call, names, library))


def _template(finding: Finding) -> str:
    label, failure = finding.label, finding.failure
    if finding.call is None or label not in {"invalid_tool_call", "argument_mismatch"}:
        return _HINTS[label]
    if failure is not None and breaks_learned_rule(failure):
        return _BY_RULE
    if failure is not None and failure.kind in _HINTS:
        return _HINTS[failure.kind]
    if label == "invalid_tool_call":
        return _HINTS["malformed_arguments"]
    return _HINTS.get(finding.evidence.kind, _HINTS[label])


def _arguments(call: ToolCall | None, names: Iterable[str], library: Library) -> str:
    """The arguments in words: the names of those that the call gives or the schema declares."""
    if call is None:
        return "the arguments"
    tool = library.get(call.name)
    declared = {} if tool is None else tool.definition.signature.properties
    seen = [
        f"`{name[:_LONGEST_NAME]}`" for name in names if name in call.arguments or name in declared
    ]
    return ", ".join(seen[:_MOST_NAMED]) or "the arguments"


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
        """Ignore undone work when the run was interrupted from outside."""
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
        """The last turn whose write failed, else the last that changed the state."""
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
