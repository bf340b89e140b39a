"""``diagnose``: why an episode failed, turn by turn, by rules over executable evidence.

SEAL, section 3.2 and appendix C.2. No model is asked and nothing is run: the same episode and the
same verdict give the same diagnosis. ``docs/diagnosis.md`` holds the table of decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentkit.diagnosis.findings import BROKEN_OFF, Finding, executable_findings, steps_of
from agentkit.diagnosis.hints import repair_hint
from agentkit.diagnosis.judged import VerdictReader
from agentkit.diagnosis.labels import OUTSIDE, dominant, ranked
from agentkit.diagnosis.recovery import recoveries, recovery_findings
from agentkit.episodes import (
    Diagnosis,
    Episode,
    Evidence,
    FailureLabel,
    Recovery,
    TurnDiagnosis,
    Verdict,
)
from agentkit.library.library import Library
from agentkit.messages import JsonObject


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
    decisive = _unmended(findings, found) if verdict is None else findings
    label = fault or _label(verdict, decisive, innocent)
    return Diagnosis(label=label, turns=turns, recoveries=found)


def diagnose_conversation(episodes: Iterable[Episode], library: Library) -> tuple[Diagnosis, ...]:
    """The diagnoses of the episodes of one conversation, each with the verdict that it carries.

    Failures that one episode leaves open are followed into the next ones.

    Args:
        episodes: The episodes, oldest first.
        library: The tools that they ran with.
    """
    diagnoses: list[Diagnosis] = []
    pending: tuple[Recovery, ...] = ()
    for episode in episodes:
        diagnosis = diagnose(episode, library, episode.verdict, pending=pending)
        diagnoses.append(diagnosis)
        pending = diagnosis.pending
    return tuple(diagnoses)


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
    """What a turn is labelled with against which there is no evidence."""
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


def _unmended(findings: Sequence[Finding], found: Sequence[Recovery]) -> list[Finding]:
    """What stood at the end of an episode that nobody judged: mended failures decide nothing."""
    mended = {one.call_id for one in found if one.outcome in {"recovered", "replaced"}}
    return [
        finding
        for finding in findings
        if finding.is_final and (finding.call is None or finding.call.call_id not in mended)
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
