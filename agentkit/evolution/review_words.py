"""The words of a review: states, events and the numbers of gates as sentences for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentkit.evolution.gates import GateReport
from agentkit.evolution.lifecycle.ledger import WHOLE_LIBRARY
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.proposals.proposal import ProposalState, Stream
from agentkit.evolution.validation.origins import FreshText
from agentkit.evolution.validation.report import OriginKind
from agentkit.library.events import EventKind, LibraryEvent
from agentkit.tools.definition import ToolDefinition

STATE_WORDS: Mapping[ProposalState, str] = {
    "proposed": "waiting for somebody to agree",
    "validated": "passed the checks, waiting",
    "shadow": "running unseen beside the answers",
    "canary": "serving a share of the sessions",
    "active": "in use",
    "superseded": "replaced by a later proposal",
    "rejected": "rejected",
    "quarantined": "held back: its proposer is quarantined",
    "rolled_back": "taken back",
}

_ORIGINS: Mapping[Stream, str] = {
    "evidence": "what tools answered and verifiers found; no model was asked",
    "feedback": "a model read failed conversations",
    "evolution": "a model read conversations that went well",
    "composite": "calls that occur together",
    "optimizer": "an optimizer",
    "import": "imported from another library",
    "person": "a person",
}

_REJECTED_BY: Mapping[str, str] = {
    "checks": "the checks",
    "unreadable": "the reader, because the answer was no proposal",
    "judge": "the judge",
    "person": "a person",
    "gate": "the numbers",
    "library": "a change of the library under it",
    "parents": "a composite that would break",
}

_EVENTS: Mapping[EventKind, str] = {
    "proposed": "proposed",
    "validated": "passed the checks",
    "shadow": "run unseen",
    "canary": "given a share of the sessions",
    "active": "put into use",
    "superseded": "replaced",
    "rejected": "rejected",
    "quarantined": "held back",
    "rolled_back": "taken back",
    "judged": "judged",
    "approved": "approved",
    "overruled": "checks overruled",
    "assessed": "compared",
    "rebased": "moved onto the new definition",
    "written": "changed the library",
    "marked": "to be validated again",
    "revalidated": "validated again",
    "pinned": "pinned",
    "unpinned": "pin removed",
    "proposer_quarantined": "proposer quarantined",
    "proposer_released": "proposer released",
}


def event_words(event: LibraryEvent) -> str:
    """What happened, in two or three words."""
    return _EVENTS.get(event.kind, event.kind.replace("_", " "))


def origin_words(record: ProposalRecord) -> str:
    """Where a proposal comes from."""
    return _ORIGINS.get(record.stream, record.stream)  # type: ignore[call-overload,no-any-return]  # any text


_SPEAKERS: Mapping[OriginKind, str] = {
    "person": "a person",
    "code": "the project's code",
    "model": "a model",
    "user": "a user",
    "tool_result": "what a tool returned",
    "server": "a server",
    "unknown": "nobody says whom",
}


def text_words(text: FreshText) -> str:
    """Whose words a new text is, and whether it waits for somebody."""
    by = f"{_SPEAKERS[text.kind]} ({text.where})" if text.where else _SPEAKERS[text.kind]
    used = "; an accepted call used it" if text.is_used else ""
    waits = "; somebody must agree to it" if text.waits else ""
    return f"{text.field}: {text.text!r}, by {by}{used}{waits}"


def demand_words(name: str, demanded: ToolDefinition | None, tool: str) -> str:
    """What models would be made to do before a tool; empty for a call that does no harm."""
    if demanded is None:
        effect = "unknown here"
    elif demanded.signature.effects.destructive:
        effect = "destructive"
    elif demanded.signature.effects.open_world:
        effect = "reaches beyond the application"
    elif demanded.signature.effects.writes is not False:
        effect = "may write"
    else:
        return ""
    return f"This would make models call {name} ({effect}) before {tool}."


def rejected_by(record: ProposalRecord) -> str:
    """Who said no to a proposal that is rejected."""
    by = str(record.rejection.facts.get("by", ""))
    return _REJECTED_BY.get(by, by or "somebody")


def pin_words(tool_name: str, version: int) -> str:
    """What is pinned to which version."""
    what = "the whole library" if tool_name == WHOLE_LIBRARY else tool_name
    return f"{what} is pinned to version {version}"


def many(number: int, noun: str) -> str:
    """``3 tasks``, ``1 task``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def chance(p_value: float) -> str:
    """How likely a result is by luck alone.

    Example:
        >>> chance(0.005), chance(0.31), chance(0.0)
        ('1 in 200', '31 in 100', 'less than 1 in 1,000,000')
    """
    if p_value < 1e-6:
        return "less than 1 in 1,000,000"
    return f"{p_value * 100:.0f} in 100" if p_value > 0.1 else f"1 in {1 / p_value:,.0f}"


def gate_words(report: GateReport) -> str:
    """What a gate found, and what follows, for readers who know no statistics.

    A gate that has no words of its own, or a report without its numbers, keeps its reason.

    Example:
        >>> from agentkit.evolution.gates import PairedScore
        >>> from agentkit.evolution.gates import offline_gate
        >>> pairs = [PairedScore(task=str(n), control=n % 2, candidate=1) for n in range(30)]
        >>> print(gate_words(offline_gate(pairs)))
        15 of 30 held-out tasks right before, 30 after: +50.0 points, 90% interval +36.7 to +66.7.
        By luck alone that happens in 1 of 65,536 cases; the limit is 1 in 20. That is a gain.
    """
    words = _GATES.get(report.gate)
    try:
        return report.reason if words is None else words(report, report.statistics)
    except KeyError:  # written by an earlier version
        return report.reason


def brief_words(report: GateReport) -> str:
    """What a gate found, on one line.

    Example:
        >>> numbers = {"tasks": 39, "wins": 12, "losses": 0, "gain": 0.308}
        >>> report = GateReport(gate="offline", decision="pass", reason="-", statistics=numbers)
        >>> brief_words(report)
        '+30.8 points on 39 held-out tasks: 12 gained, 0 lost'
    """
    numbers = report.statistics
    if report.gate != "offline" or not {"tasks", "wins", "losses", "gain"} <= numbers.keys():
        return report.reason
    if not numbers["tasks"]:
        return "no held-out task uses this tool"
    tasks, wins, losses = (int(numbers[name]) for name in ("tasks", "wins", "losses"))
    gain = f"{100 * numbers['gain']:+.1f} points on {many(tasks, 'held-out task')}"
    return f"{gain}: {wins:,} gained, {losses:,} lost"


def _offline(report: GateReport, numbers: Mapping[str, float]) -> str:
    tasks, before, after = int(numbers["tasks"]), numbers["control"], numbers["candidate"]
    if not tasks:
        return "No held-out task uses this tool, so nothing could be compared."
    low, high, gain = (100 * numbers[name] for name in ("gain_low", "gain_high", "gain"))
    level = 1 - 2 * numbers["level"]
    scored = (
        f"{_right(before, tasks)} before, {_right(after, 0)} after"
        if not _is_count(before, tasks) or not _is_count(after, tasks)
        else f"{before * tasks:.0f} of {many(tasks, 'held-out task')} right before, "
        f"{after * tasks:.0f} after"
    )
    found = f"{scored}: {gain:+.1f} points, {level:.0%} interval {low:+.1f} to {high:+.1f}."
    luck = _luck(numbers["p_value"])
    limit = f"the limit is {chance(numbers['level'])}"
    ends: Mapping[str, str] = {
        "pass": f"{luck}; {limit}. That is a gain.",
        "fail": (
            "That is no gain." if gain <= 0 else f"{luck}; {limit}. That is no evidence of a gain."
        ),
        "wait": f"Undecided: {report.reason}.",
    }
    return f"{found}\n{ends[report.decision]}"


def _luck(p_value: float) -> str:
    """How often a gain as large as this one comes without a better definition."""
    return f"By luck alone that happens in {chance(p_value).replace(' in ', ' of ', 1)} cases"


def _right(mean: float, tasks: int) -> str:
    of = f" on {many(tasks, 'held-out task')}" if tasks else ""
    return f"{mean:.1%}{of}"


def _is_count(mean: float, tasks: int) -> bool:
    return abs(mean * tasks - round(mean * tasks)) < 1e-6


def _canary(report: GateReport, numbers: Mapping[str, float]) -> str:
    served, others = int(numbers["candidate_sessions"]), int(numbers["control_sessions"])
    found = (
        f"{many(served, 'session')} with the change: {numbers['candidate_mean']:.1%} right; "
        f"{many(others, 'session')} without it: {numbers['control_mean']:.1%}."
    )
    margin = f"{100 * numbers['margin']:g} points"
    ends: Mapping[str, str] = {
        "pass": f"It is not worse by {margin} or more.",
        "fail": f"It was stopped: {report.reason.partition(';')[0]}.",
        "wait": f"More sessions are needed to say that it is not worse by {margin}.",
    }
    return f"{found}\n{ends[report.decision]}"


def _shadow(report: GateReport, numbers: Mapping[str, float]) -> str:
    found = (
        f"Repeated unseen on {many(int(numbers['pairs']), 'request')}: "
        f"{int(numbers['wins'])} better, {int(numbers['losses'])} worse."
    )
    ends: Mapping[str, str] = {
        "pass": f"{_luck(numbers['p_value'])}. That is a gain.",
        "fail": f"It was stopped: {report.reason.partition(';')[0]}.",
        "wait": "More requests are needed to say whether it is better.",
    }
    return f"{found}\n{ends[report.decision]}"


_GATES: Mapping[str, Callable[[GateReport, Mapping[str, float]], str]] = {
    "offline": _offline,
    "canary": _canary,
    "shadow": _shadow,
}
