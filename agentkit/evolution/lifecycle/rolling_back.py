"""Taking back what became active, by moving the tool's pointer to an earlier definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agentkit.errors import UsageError
from agentkit.evolution.lifecycle.ancestors import Above, is_wording
from agentkit.evolution.lifecycle.consenting import record_of
from agentkit.evolution.lifecycle.drafts import Scribe
from agentkit.evolution.lifecycle.promoting import marks
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.library.pins import repinned, with_current_pins
from agentkit.library.store import ToolRevision
from agentkit.tools.definition import ToolDefinition

History = Callable[[str], Sequence[ToolRevision]]


def roll_back_step(
    on: Position, which: str, author: Author, reason: str, *, history: History
) -> Step | None:
    """Take a proposal back, and all that became active on the same tool after it.

    The tool gets the very definition that it had before, as a new revision; nothing is deleted.
    Nothing is tried first, so that nothing can stand in the way: composites above are pinned anew
    and marked for re-validation. One in canary is taken out of it. None when it is done already.

    Args:
        on: The newest position.
        which: A proposal's id, or the name of a tool, whose last promotion is taken back.
        author: Who takes it back.
        reason: Why.
        history: The revisions of a tool.

    Raises:
        UsageError: There is no such proposal or tool, or nothing of it to take back.
    """
    record = _wanted(on, which)
    if record.state == "rolled_back":
        return None
    scribe = Scribe.of(record, author, version=on.library.version)
    if record.state == "canary":
        return Step(drafts=(scribe.draft("rolled_back", reason),))
    stack = on.ledger.promoted.get(record.tool_name, ())
    if record.proposal_id not in stack:
        raise UsageError(
            f"the proposal {record.proposal_id!r} is {record.state} ({record.last_word}); only "
            "what serves, or what later proposals were built on, can be taken back"
        )
    taken = stack[stack.index(record.proposal_id) :]
    before = _definition_before(record, history)
    return _restored(on, before, scribe, taken, reason)


def _wanted(on: Position, which: str) -> ProposalRecord:
    promoted = on.ledger.promoted.get(which, ())
    if which in on.ledger.proposals or not (promoted or which in on.library):
        return record_of(on.ledger, which)
    trial = on.ledger.experiment(which)
    if trial is not None and trial.state == "canary":
        return trial
    if not promoted:
        raise UsageError(
            f"no proposal serves as {which!r}; to go back to an earlier revision that a person "
            f"wrote, use 'agentkit rollback {which} --to VERSION'"
        )
    return on.ledger.proposals[promoted[-1]]


def _definition_before(record: ProposalRecord, history: History) -> ToolDefinition | None:
    """What the tool was before a proposal became active."""
    activation = record.activation
    if activation is None:
        return None
    earlier = [
        revision
        for revision in history(record.tool_name)
        if revision.version < activation.library_version
    ]
    return earlier[-1].definition if earlier else None


def _restored(
    on: Position,
    before: ToolDefinition | None,
    scribe: Scribe,
    taken: Sequence[str],
    reason: str,
) -> Step:
    current = on.library.get(scribe.tool_name)
    upserts: tuple[ToolDefinition, ...] = ()
    removals = () if before is not None or current is None else (scribe.tool_name,)
    if removals and (callers := on.library.dag.parents.get(scribe.tool_name, ())):
        raise UsageError(
            f"{scribe.tool_name!r} was new, so taking it back removes it, and "
            f"{', '.join(map(repr, callers))} would miss it; take that back first"
        )
    if before is not None and current is not None:
        restored = pinned_now(on.library, before)
        if restored != current.definition:
            upserts = repinned(on.library, [restored])
    version = on.library.version + bool(upserts or removals)
    now = upserts[0].digest if upserts else ""
    drafts = [
        replace(
            replace(scribe, proposal_id=proposal_id, version=version).draft("rolled_back", reason),
            digest_before=current.definition.digest if current and (upserts or removals) else "",
            digest_after=now,
        )
        for proposal_id in reversed(taken)
    ]
    if upserts[1:]:
        repins = {one.name: one.digest for one in upserts[1:]}
        drafts[0] = replace(drafts[0], facts={"repinned": repins})
    if upserts and current is not None:
        above = unknown_above(current.definition, upserts)
        drafts += marks(scribe.author, upserts[0], above, version=version)
    if removals:
        drafts.append(_removed(scribe, version))
    return Step(
        drafts=tuple(drafts),
        upserts=upserts,
        removals=removals,
        change_id=f"rollback-{taken[0]}" if upserts or removals else "",
        author=scribe.author,
        reason=reason or f"take back {', '.join(reversed(taken))}",
    )


def _removed(scribe: Scribe, version: int) -> EventDraft:
    return EventDraft(
        kind="written",
        author=scribe.author,
        reason=f"{scribe.tool_name!r} was new, and was taken back",
        tool_name=scribe.tool_name,
        library_version=version,
        facts={"operation": "rollback", "removed": [scribe.tool_name]},
    )


def pinned_now(library: Library, definition: ToolDefinition) -> ToolDefinition:
    """An earlier definition, which for a composite pins its children as they are now."""
    if not definition.is_composite:
        return definition
    return with_current_pins(library.with_tools([definition]), definition)


def unknown_above(before: ToolDefinition, upserts: Sequence[ToolDefinition]) -> Above:
    """The composites above a change that was not tried on them."""
    changed, *above = upserts
    why = "it was not tried with the definition that was restored"
    unknown = {} if is_wording(before, changed) else {one.name: why for one in above}
    return Above(repinned=tuple(above), unknown=unknown)
