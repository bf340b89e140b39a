"""``Review``: all that a person needs to decide about a proposal, as data for any view.

The terminal renders it now, and a browser may render the same. Texts are as they were written:
whoever shows them makes control characters visible and folds what is long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

from agentkit.errors import CompositeError, UsageError
from agentkit.evolution.gates import GateReport
from agentkit.evolution.lifecycle.differences import Difference, differences
from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.evolution.lifecycle.moves import command
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.lifecycle.screening import change_of_new, with_origins
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.model_view import ModelView, ViewChange, view_changes
from agentkit.evolution.proposals.composites.prompt import source_of
from agentkit.evolution.review_conversations import Conversation, FindEpisode, failing_conversations
from agentkit.evolution.review_words import (
    STATE_WORDS,
    brief_words,
    demand_words,
    event_words,
    gate_words,
    origin_words,
    rejected_by,
    text_words,
)
from agentkit.evolution.validation.origins import fresh_texts
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.library.dag import ancestors
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import demanded

_SEEN_BY_MODELS = ("name", "summary", "usage_rules", "rules", "parameters.", "signature.parameters")
_NEAREST = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What one gate said.

    Attributes:
        stage: The stage at which it was asked.
        report: The report, with its numbers and the names of tasks gained and lost.
    """

    stage: str
    report: GateReport

    @property
    def words(self) -> str:
        """The numbers in words."""
        return gate_words(self.report)

    def to_json(self) -> dict[str, Any]:
        """The comparison as a JSON object."""
        return {"stage": self.stage, "words": self.words, **self.report.to_json()}


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One thing that happened to a proposal.

    Attributes:
        number: Place of its event among all events.
        at: ISO 8601 time in UTC.
        what: What happened, in words.
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
        before: What models see without it; None for a tool that is new.
        after: What they would see with it; None for an answer that could not be read.
        changes: How these differ.
        other_changes: What changes that no model sees, such as worked calls.
        demands: Calls with effects that models would newly have to make first, in sentences.
        foreign_words: New words that are no code's and no person's, or that wait for somebody.
        program_before: The program of a composite; empty for none.
        program_after: The program as it would be.
        evidence: How many conversations it was made from.
        conversations: Up to three of those that failed, without personal data of known formats.
        comparisons: What each gate said last.
        failed_checks: Why checks rejected it.
        overrulable: Codes of these that a person may overrule.
        agreed: Who agreed.
        dependents: Composites above the tool.
        answer: What was answered, where it could not be read as a proposal.
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
    before: ModelView | None
    after: ModelView | None
    changes: tuple[ViewChange, ...]
    other_changes: tuple[Difference, ...]
    demands: tuple[str, ...]
    foreign_words: tuple[str, ...]
    program_before: str
    program_after: str
    evidence: int
    conversations: tuple[Conversation, ...]
    comparisons: tuple[Comparison, ...]
    failed_checks: tuple[FailedCheck, ...]
    overrulable: tuple[str, ...]
    agreed: tuple[str, ...]
    dependents: tuple[str, ...]
    answer: str
    is_outdated: bool
    history: tuple[HistoryEntry, ...]

    @property
    def summary(self) -> str:
        """What changes, on one line."""
        return summary_of(self.before, self.after, self.changes)

    def to_json(self) -> dict[str, Any]:
        """The review as a JSON object."""
        return {
            **{name: _plain(getattr(self, name)) for name in self.__dataclass_fields__},
            "summary": self.summary,
        }


def find_proposal(ledger: Ledger, which: str) -> ProposalRecord:
    """The proposal of an id, of the beginning of one, of a tool's name, or ``last``.

    The name of a tool means its one open proposal, or else its latest.

    Raises:
        UsageError: There is none, or several fit.
    """
    records = ledger.proposals
    if which in records:
        return records[which]
    if which == "last" and records:
        return list(records.values())[-1]
    if which == "last":
        raise UsageError("there is no proposal yet; 'agentkit evolve' makes them")
    begun = [one for one in records.values() if which and one.proposal_id.startswith(which)]
    of_tool = [one for one in records.values() if one.tool_name == which]
    open_of_tool = [one for one in of_tool if one.is_open]
    found = begun if not of_tool else open_of_tool or of_tool[-1:]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(one.proposal_id for one in found[:_NEAREST])
        more = f" and {len(found) - _NEAREST} more" if len(found) > _NEAREST else ""
        raise UsageError(f"{which!r} fits {len(found)} proposals: {ids}{more}; name one")
    names = [*records, *dict.fromkeys(one.tool_name for one in records.values())]
    near = get_close_matches(which, filter(None, names), n=_NEAREST, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise UsageError(
        f"there is no proposal {which!r}, and no proposal for a tool of that name; {hint}"
        "'agentkit review list --all' shows all"
    )


def review_of(manager: ToolManager, which: str, *, find: FindEpisode | None = None) -> Review:
    """All that a person needs to decide about a proposal.

    Args:
        manager: Of the library.
        which: See ``find_proposal``.
        find: Finds the conversations that it was made from; without it none is shown.

    Raises:
        UsageError: There is no such proposal.
    """
    record = find_proposal(manager.ledger, which)
    stands = manager.standing(record.proposal_id)
    base, candidate = _sides(manager, record)
    views = [None if one is None else ModelView.of(one) for one in (base, candidate)]
    changes = () if candidate is None else view_changes(*views)
    newest = manager.library.get(record.tool_name)
    evidence = record.events[0].evidence
    return Review(
        proposal_id=record.proposal_id,
        tool=record.tool_name,
        state=record.state,
        status=STATE_WORDS[record.state],
        waits_for=_waits_for(record, _in_words(record, stands.why)),
        commands=(*stands.commands, *_other_ways(record)),
        origin=origin_words(record),
        proposer=record.author.name,
        proposer_kind=record.author.kind,
        why=record.reason,
        before=views[0],
        after=views[1],
        changes=changes,
        other_changes=() if candidate is None else tuple(_unseen(base, candidate)),
        demands=tuple(_demands(manager.library, base, candidate)),
        foreign_words=tuple(_foreign_words(manager.library, record, base)),
        program_before=_program(base),
        program_after=_program(candidate),
        evidence=len(evidence),
        conversations=tuple(
            failing_conversations(find, evidence, record.tool_name, views[1]) if find else ()
        ),
        comparisons=_comparisons(record),
        failed_checks=record.failed,
        overrulable=record.overrulable,
        agreed=tuple(_agreed(record)),
        dependents=_dependents(manager.library, record.tool_name),
        answer=record.unreadable_text,
        is_outdated=record.is_open
        and newest is not None
        and newest.definition.digest != record.base,
        history=tuple(_history(record)),
    )


def summary_of(
    before: ModelView | None, after: ModelView | None, changes: Iterable[ViewChange]
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


def _sides(
    manager: ToolManager, record: ProposalRecord
) -> tuple[ToolDefinition | None, ToolDefinition | None]:
    """The definition without the proposal and with it."""
    base = manager.revision(record.tool_name, record.base) if record.base else None
    return base, record.candidate


def _unseen(base: ToolDefinition | None, candidate: ToolDefinition) -> Iterator[Difference]:
    """What no model sees; a program is shown as text elsewhere."""
    empty = ToolDefinition(name=candidate.name)
    for one in differences(base or empty, candidate):
        if not one.field.startswith(_SEEN_BY_MODELS) and one.field != "body":
            yield one


def _demands(
    library: Library, base: ToolDefinition | None, candidate: ToolDefinition | None
) -> Iterator[str]:
    """What models would have to call first, and did not have to before."""
    had = {} if base is None else demanded(base, library)
    wanted = {} if candidate is None else demanded(candidate, library)
    inside = () if candidate is None else {pin.name for pin in candidate.signature.children}
    for name, definition in wanted.items():
        words = demand_words(name, definition, candidate.name if candidate else "")
        if words and name not in had and name not in inside:
            yield words


def _foreign_words(
    library: Library, record: ProposalRecord, base: ToolDefinition | None
) -> Iterator[str]:
    """The new words that come neither from code nor from a person."""
    candidate = record.candidate
    if candidate is None or record.is_arrival:
        return
    if base is None:
        change = change_of_new(candidate, library, ())
    else:
        change = ProposedChange(base=base, candidate=candidate, library=library)
    for text in fresh_texts(with_origins(change, record.proposal)):
        if text.waits or (text.where and text.kind != "code"):
            yield text_words(text)


def _program(definition: ToolDefinition | None) -> str:
    if definition is None or not definition.is_composite:
        return ""
    try:
        return source_of(definition)
    except CompositeError as error:
        return f"# the body is no program: {error}"


def _in_words(record: ProposalRecord, why: str) -> str:
    """A reason without the notation of statistics, where it is what a gate said."""
    for one in _comparisons(record):
        why = why.replace(one.report.reason, brief_words(one.report))
    return why


def _waits_for(record: ProposalRecord, why: str) -> str:
    if record.state == "rejected":
        return f"rejected by {rejected_by(record)}{f': {why}' if why else ''}"
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


def _comparisons(record: ProposalRecord) -> tuple[Comparison, ...]:
    """The last report of each gate at each stage."""
    last: dict[tuple[str, str], Comparison] = {}
    for event in record.assessments:
        facts = dict(event.facts)
        stage = str(facts.pop("stage", ""))
        report = GateReport.from_json(facts)
        last[stage, report.gate] = Comparison(stage=stage, report=report)
    return tuple(last.values())


def _agreed(record: ProposalRecord) -> Iterator[str]:
    for event in record.events:
        if event.kind == "approved" or (event.kind == "judged" and event.facts.get("agrees")):
            yield f"{event.author.name}{f': {event.reason}' if event.reason else ''}"


def _dependents(library: Library, tool: str) -> tuple[str, ...]:
    return ancestors(library, tool) if tool in library else ()


def _history(record: ProposalRecord) -> Iterator[HistoryEntry]:
    for event in record.events:
        yield HistoryEntry(
            number=event.sequence,
            at=event.at,
            what=event_words(event),
            who=event.author.name,
            who_kind=event.author.kind,
            reason=_in_words(record, event.reason) if event.kind != "proposed" else "",
            library_version=event.library_version if event.digest_after else 0,
        )
