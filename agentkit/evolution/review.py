"""``Review``: all that a person needs to decide about a proposal, as data for any view.

The terminal renders it now, and a browser may render the same. Texts are as they were written:
whoever shows them makes control characters visible and folds what is long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.redaction import Redaction
from agentkit.evolution.checker import change_of
from agentkit.evolution.decide import command
from agentkit.evolution.differences import (
    Difference,
    ViewChange,
    model_view,
    unseen_changes,
    view_changes,
)
from agentkit.evolution.gates import GateReport
from agentkit.evolution.ledger import WHOLE_LIBRARY
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposal import ProposalRecord, ProposalState
from agentkit.evolution.validation.approvals import FreshText, fresh_texts
from agentkit.evolution.validation.report import FailedCheck, OriginKind
from agentkit.evolution.worth import Traffic, Worth, undoing, worth_of
from agentkit.library.dag import ancestors
from agentkit.library.library import Library
from agentkit.messages import ToolCall, ToolResult
from agentkit.tools.definition import ToolDefinition, is_instructions
from agentkit.tools.rules.checking import demanded
from agentkit.tools.schema_validator import fits

# --- The words of a review ------------------------------------------------------------------------

STATE_WORDS: Mapping[ProposalState, str] = {
    "proposed": "waiting for somebody to agree",
    "validated": "passed the checks, waiting",
    "shadow": "running unseen beside the answers",
    "canary": "serving a share of the sessions",
    "active": "in use",
    "superseded": "replaced by a later proposal",
    "rejected": "rejected",
    "quarantined": "held back",
    "rolled_back": "taken back",
}

_ORIGINS: Mapping[str, str] = {
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
    "judge": "the judge",
    "person": "a person",
    "gate": "the numbers",
    "library": "a change of the library under it",
    "parents": "a composite that would break",
}

_SPEAKERS: Mapping[OriginKind, str] = {
    "person": "a person",
    "code": "the project's code",
    "model": "a model",
    "user": "a user",
    "tool_result": "what a tool returned",
    "server": "a server",
    "unknown": "a program",
}


def _text_words(text: FreshText, needs: Sequence[str]) -> str:
    """Who wrote a new text, or took one away, and who must therefore agree."""
    origin = text.origin
    where = f" ({origin.where})" if origin.where else ""
    used = "; an accepted call used it" if origin.is_used else ""
    who = "a judge and a person" if {"judge", "person"} <= {*needs} else "a judge or a person"
    waits = f": {who} must agree" if text.waits else ""
    deed = "took this text away" if text.is_removed else "wrote this text"
    by = f"{_SPEAKERS[origin.kind]} {deed}{where}"
    return f"{text.field}: {origin.text.strip()!r}; {by}{used}{waits}"


def _effect(demanded: ToolDefinition | None) -> str:
    """What a call that models would be made to do can do; empty for one that does no harm."""
    if demanded is None:
        return "unknown here"
    effects = demanded.signature.effects
    if effects.destructive:
        return "destructive"
    if effects.open_world:
        return "reaches beyond the application"
    return "may write" if effects.writes is not False else ""


def pin_words(tool_name: str, version: int) -> str:
    """What is pinned to which version."""
    what = "the whole library" if tool_name == WHOLE_LIBRARY else tool_name
    return f"{what} is pinned to version {version}"


# --- Conversations in which a tool failed: the request, the wrong call and the answer -------------

FindEpisode: TypeAlias = Callable[[str], Episode | None]
"""Gives the episode of an id, None where it is not kept; ``EpisodeStore.get`` is one."""

MOST_CONVERSATIONS = 3
_MOST_READ = 64  # episodes of one proposal in which failing calls are looked for


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation:
    """A conversation in which the tool failed.

    Attributes:
        episode_id: Which.
        request: What the user asked for.
        tool: The tool that was called; empty where nothing was.
        arguments: What it was called with, each value as JSON.
        wrong: Names of the arguments that were wrong, as far as anything says so.
        answer: What the tool answered; the agent, where instructions are to change.
        verdict: What a verifier found; empty for nothing.
        has_failed: Whether a call of the tool failed, or a verifier found something.
    """

    episode_id: str
    request: str
    tool: str = ""
    arguments: Mapping[str, str]
    wrong: tuple[str, ...] = ()
    answer: str = ""
    verdict: str = ""
    has_failed: bool = False


def failing_conversations(
    find: FindEpisode, evidence: Iterable[str], tool: str, after: ToolDefinition | None
) -> Sequence[Conversation]:
    """Conversations in which the tool failed, or, where none did, what there is."""
    ids = islice(dict.fromkeys(evidence), _MOST_READ)
    redact, episodes = Redaction(), filter(None, map(find, ids))
    told = [_conversation(redact(episode), tool, after) for episode in episodes]
    return sorted(told, key=lambda one: not one.has_failed)[:MOST_CONVERSATIONS]


def _conversation(episode: Episode, tool: str, after: ToolDefinition | None) -> Conversation:
    verdict = episode.verdict
    findings = () if verdict is None or verdict.passed else verdict.evidence
    blamed = {one.parameter for one in findings if one.tool in {"", tool} and one.parameter}
    results = {one.call_id: one for one in episode.results}
    calls = [
        (call, results.get(call.call_id))
        for call in episode.calls
        if episode.library_names.get(call.name, call.name) == tool
    ]
    failed = [pair for pair in calls if pair[1] is not None and pair[1].status != "ok"]
    told = Conversation(
        episode_id=episode.episode_id,
        request=episode.request,
        arguments={},
        verdict="; ".join(dict.fromkeys(one.message for one in findings)),
    )
    if is_instructions(tool):
        is_wrong = verdict is not None and not verdict.passed
        return replace(told, answer=str(episode.output or ""), has_failed=is_wrong)
    if not calls:
        return told
    call, result = (failed or calls)[0]
    values = call.arguments.items()
    return replace(
        told,
        tool=tool,
        arguments={name: json.dumps(v, ensure_ascii=False, default=repr) for name, v in values},
        wrong=_wrong(call, result, blamed, after),
        answer="" if result is None else result.failure.rule if result.failure else result.text,
        has_failed=bool(failed or findings),
    )


def _wrong(
    call: ToolCall, result: ToolResult | None, blamed: set[str], after: ToolDefinition | None
) -> tuple[str, ...]:
    """Arguments that the failure or a verifier names, or that the changed schema refuses."""
    failure = None if result is None else result.failure
    named = {failure.path.split(".")[0].split("[")[0]} if failure is not None else set()
    schema = {} if after is None else after.parameters_schema
    properties = schema.get("properties", {})
    refused = {
        name
        for name, value in call.arguments.items()
        if fits(value, properties.get(name, {}), root=schema) is False
    }
    return tuple(name for name in call.arguments if name in named | refused | blamed)


# --- The review -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One thing that happened to a proposal.

    Attributes:
        number: Place of its event among all events.
        at: ISO 8601 time in UTC.
        what: What happened, as the log calls it.
        who: Name of who did it.
        who_kind: ``person``, ``model`` or ``program``.
        reason: Why.
        library_version: The version that it made; 0 for none.
    """

    number: int
    at: str
    what: str
    who: str
    who_kind: str
    reason: str
    library_version: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """One proposal as a person reviews it.

    Attributes:
        proposal_id: Which.
        tool: The tool that it changes.
        state: Where it stands, in the ledger's word.
        status: The same in words.
        waits_for: What it waits for, or why it ended.
        commands: What may be typed next.
        origin: Where it comes from, in words.
        proposer: Who suggests it.
        proposer_kind: ``person``, ``model`` or ``program``.
        why: Why it was suggested.
        before: The tool without it; None for one that is new.
        after: The tool with it; None for an unreadable answer that an earlier release kept.
        changes: How these differ.
        other_changes: What changes that no model sees, such as worked calls.
        demands: Calls with effects that models would newly have to make first, in sentences.
        foreign_words: New words that are no code's and no person's, or that wait for somebody, and
            texts that were taken away and wait.
        evidence: How many conversations it was made from.
        conversations: Up to three of those that failed, without personal data of known formats.
        comparisons: What each gate said last.
        worth: What it is worth on later traffic; None where nothing can be held against anything.
        undoing: What earlier promotions set and this takes back, or sets once more, in sentences.
        failed_checks: Why checks rejected it, or what they doubt.
        agreed: Who agreed.
        dependents: Composites above the tool.
        is_outdated: Whether the tool has changed since; the change is moved onto that.
        history: All that happened, oldest first.
    """

    proposal_id: str
    tool: str
    state: str
    status: str
    waits_for: str
    commands: tuple[str, ...]
    origin: str
    proposer: str
    proposer_kind: str
    why: str
    before: ToolDefinition | None
    after: ToolDefinition | None
    changes: tuple[ViewChange, ...]
    other_changes: tuple[Difference, ...]
    demands: tuple[str, ...]
    foreign_words: tuple[str, ...]
    evidence: int
    conversations: tuple[Conversation, ...]
    comparisons: tuple[GateReport, ...]
    worth: Worth | None
    undoing: tuple[str, ...]
    failed_checks: tuple[FailedCheck, ...]
    agreed: tuple[str, ...]
    dependents: tuple[str, ...]
    is_outdated: bool
    history: tuple[HistoryEntry, ...]

    @property
    def summary(self) -> str:
        """What changes, on one line."""
        return summary_of(self.before, self.after, self.changes)

    def to_json(self) -> dict[str, Any]:
        """The review as a JSON object, with what models see before and after."""
        return {
            **{name: _plain(getattr(self, name)) for name in self.__dataclass_fields__},
            "before": None if self.before is None else model_view(self.before),
            "after": None if self.after is None else model_view(self.after),
            "summary": self.summary,
        }


def review_of(
    manager: ToolManager,
    which: str,
    *,
    find: FindEpisode | None = None,
    traffic: Callable[[str], Iterable[Episode] | Traffic] | None = None,
) -> Review:
    """All that a person needs to decide about a proposal.

    Args:
        manager: Of the library.
        which: See ``Ledger.find``.
        find: Finds the conversations that it was made from; without it none is shown.
        traffic: Gives the episodes that called a tool, for the worth of what was promoted; without
            it none is shown.

    Raises:
        UsageError: There is no such proposal.
    """
    record = manager.ledger.find(which)
    stands = manager.status(record.proposal_id)
    revision = cache(manager.revision)
    base = revision(record.tool_name, record.base) if record.base else None
    candidate = record.candidate
    changes = () if candidate is None else view_changes(base, candidate)
    newest = manager.library.get(record.tool_name)
    evidence = record.events[0].evidence
    return Review(
        proposal_id=record.proposal_id,
        tool=record.tool_name,
        state=record.state,
        status=STATE_WORDS[record.state],
        waits_for=_waits_for(record, stands.why),
        commands=(*stands.commands, *_other_ways(record)),
        origin=_ORIGINS.get(record.stream, record.stream),
        proposer=record.author.name,
        proposer_kind=record.author.kind,
        why=record.reason,
        before=base,
        after=candidate,
        changes=changes,
        other_changes=() if candidate is None else unseen_changes(base, candidate),
        demands=tuple(_demands(manager.library, base, candidate)),
        foreign_words=tuple(_foreign_words(manager.library, record, base)),
        evidence=len(evidence),
        conversations=tuple(
            failing_conversations(find, evidence, record.tool_name, candidate) if find else ()
        ),
        comparisons=_comparisons(record),
        worth=worth_of(record.proposal_id, manager.ledger, revision, traffic(record.tool_name))
        if traffic and record.activation
        else None,
        undoing=undoing(record, manager.ledger, revision),
        failed_checks=record.failed or record.doubts,
        agreed=tuple(_agreed(record)),
        dependents=() if newest is None else ancestors(manager.library, record.tool_name),
        is_outdated=record.is_open
        and newest is not None
        and newest.definition.digest != record.base,
        history=tuple(_history(record)),
    )


def summary_of(
    before: ToolDefinition | None, after: ToolDefinition | None, changes: Iterable[ViewChange]
) -> str:
    """What changes for models, on one line: what schemas say, and else what texts say."""
    if after is None:
        return "" if before is None else f"{before.name} is removed."
    if before is None:
        return f"A new tool: {after.text.partition(chr(10))[0]}"
    facts = [change.sentence for change in changes if not change.is_text]
    texts = [_new_words(change) for change in changes if change.is_text]
    told = facts or texts
    more = f" (and {len(told) - 2} more)" if len(told) > 2 else ""
    return " ".join(told[:2]) + more if told else "Nothing that models see."


def _new_words(change: ViewChange) -> str:
    """The lines of a text that come, or what becomes of it."""
    before = change.before.splitlines()
    come = [line for line in change.after.splitlines() if line not in before]
    return " ".join(come) or change.sentence


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "to_json"):
        return value.to_json()
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def _demands(
    library: Library, base: ToolDefinition | None, candidate: ToolDefinition | None
) -> Iterator[str]:
    """What models would have to call first, and did not have to before."""
    had = {} if base is None else demanded(base, library)
    wanted = {} if candidate is None else demanded(candidate, library)
    inside = () if candidate is None else {pin.name for pin in candidate.signature.children}
    for name, definition in wanted.items():
        effect = _effect(definition)
        if candidate and effect and name not in had and name not in inside:
            yield f"This would make models call {name} ({effect}) before {candidate.name}."


def _foreign_words(
    library: Library, record: ProposalRecord, base: ToolDefinition | None
) -> Iterator[str]:
    """The new words that come neither from code nor from a person, and texts taken away."""
    candidate = record.candidate
    if candidate is None or record.is_arrival:
        return
    for text in fresh_texts(change_of(base, candidate, library, proposal=record.current)):
        if text.waits or (text.origin.where and text.origin.kind != "code"):
            yield _text_words(text, record.needs)


def _waits_for(record: ProposalRecord, why: str) -> str:
    if record.state == "rejected":
        by = str(record.rejection.facts.get("by", "")) or "somebody"
        return f"rejected by {_REJECTED_BY.get(by, by)}{f': {why}' if why else ''}"
    if record.state == "active" and record.activation is not None:
        return f"in use since library version {record.activation.library_version}: {why}"
    return why


def _other_ways(record: ProposalRecord) -> tuple[str, ...]:
    """What a person may do with an open proposal beside letting it go on."""
    if not record.is_open:
        return ()
    if record.state == "canary":
        return (command("rollback", record.proposal_id),)
    reject = command("review", "reject", record.proposal_id, "--reason", "WHY")
    canary = command("review", "canary", record.proposal_id)
    return (canary, reject) if record.state == "validated" else (reject,)


def _comparisons(record: ProposalRecord) -> tuple[GateReport, ...]:
    """The last report of each gate."""
    last: dict[str, GateReport] = {}
    for event in record.assessments:
        report = GateReport.from_json(event.facts)
        last[report.gate] = report
    return tuple(last.values())


def _agreed(record: ProposalRecord) -> Iterator[str]:
    for event in record.events:
        if event.kind == "approved" or (event.kind == "judged" and event.facts.get("agrees")):
            yield f"{event.author.name}{f': {event.reason}' if event.reason else ''}"


def _history(record: ProposalRecord) -> Iterator[HistoryEntry]:
    for event in record.events:
        yield HistoryEntry(
            number=event.sequence,
            at=event.at,
            what=event.kind.replace("_", " "),
            who=event.author.name,
            who_kind=event.author.kind,
            reason=event.reason if event.kind != "proposed" else "",
            library_version=event.library_version if event.digest_after else 0,
        )
