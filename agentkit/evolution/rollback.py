"""Take changes back, whoever made them, and write changes outside of proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agentkit.errors import UsageError
from agentkit.evolution.approvals import Scribe, record_of
from agentkit.evolution.insertion import Above, is_wording, marks
from agentkit.evolution.ledger import Ledger
from agentkit.evolution.proposal import ProposalRecord
from agentkit.evolution.provenance import Provenance
from agentkit.evolution.repository import Position, Step
from agentkit.library.event_chain import EventDraft, Operation, written
from agentkit.library.events import Author, LibraryEvent
from agentkit.library.library import Library
from agentkit.library.pins import repinned, with_current_pins
from agentkit.library.store import LibraryChange, ToolRevision, ToolStore
from agentkit.tools.definition import ToolDefinition

# --- Taking changes back, whoever made them, by giving tools the definitions that they had be ----
# Taking changes back, whoever made them, by giving tools the definitions that they had before.


History = Callable[[str], Sequence[ToolRevision]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Undoable:
    """A change that stands, and can be taken back.

    Attributes:
        version: The library version that it made.
        names: The tools of it that are still as it made them, or were.
        proposal_id: The proposal whose promotion it is; empty for any other change.
        reason: Why it was made.
    """

    version: int
    names: tuple[str, ...]
    proposal_id: str = ""
    reason: str = ""


def find_change(
    ledger: Ledger, store: ToolStore, events: Sequence[LibraryEvent], which: str = ""
) -> Undoable | None:
    """The last change that nobody took back: of a tool, by its id, or of the whole library.

    Args:
        ledger: What the events come to.
        store: Where the library is kept.
        events: All of them.
        which: A tool, or the id of a change as the log shows it; empty for the last change.

    Returns:
        The change; None when nothing is left, or the id is not known.
    """
    by_id = [one.library_version for one in events if which and one.facts.get("change") == which]
    history = () if by_id else store.history(which) if which else ()
    versions = by_id or ([one.version for one in history] if which else store.versions())
    backs, undone = _taken_back(events)
    promoted = {
        record.activation.library_version: record
        for record in ledger.proposals.values()
        if record.activation is not None
    }
    for version in reversed(versions):
        record = promoted.get(version)
        if version in backs or (record is not None and record.state == "rolled_back"):
            continue
        if record is not None and history and record.tool_name != which:
            continue  # it was only pinned anew
        if record is not None and record.proposal_id in ledger.promoted.get(record.tool_name, ()):
            names: tuple[str, ...] = (record.tool_name,)
            return Undoable(version=version, names=names, proposal_id=record.proposal_id)
        changed = (which,) if history else _changed(store, version)
        if names := tuple(name for name in changed if (version, name) not in undone):
            made = (one for one in store.history(names[0]) if one.version == version)
            return Undoable(version=version, names=names, reason=next(made).reason)
    return None


def _taken_back(events: Iterable[LibraryEvent]) -> tuple[set[int], set[tuple[int, str]]]:
    """The versions that take something back, and what was taken back of others, tool by tool."""
    backs: set[int] = set()
    undone: set[tuple[int, str]] = set()
    for event in events:
        is_restored = event.kind == "rolled_back" and event.digest_after
        if is_restored or event.facts.get("operation") in {"rollback", "undo"}:
            backs.add(event.library_version)
        undone |= {(event.facts["undone"], name) for name in event.facts.get("tools_undone", ())}
    return backs, undone


def _changed(store: ToolStore, version: int) -> tuple[str, ...]:
    """The tools that a version changed, added or removed."""
    before, after = store.load(version - 1), store.load(version)
    names = dict.fromkeys([*after.tools, *before.tools])
    return tuple(name for name in names if _digest_in(before, name) != _digest_in(after, name))


def _digest_in(library: Library, name: str) -> str:
    tool = library.get(name)
    return "" if tool is None else tool.definition.digest


def undo_step(
    on: Position,
    change: Undoable,
    author: Author,
    reason: str,
    *,
    history: History,
    change_id: str,
) -> Step:
    """Give the tools of a change the definitions that they had before it; new ones are removed.

    Args:
        on: The newest position.
        change: What is taken back.
        author: Who takes it back.
        reason: Why.
        history: The revisions of a tool.
        change_id: Of the change that takes it back.

    Raises:
        UsageError: A tool was changed again since then, or others call one that would go.
    """
    restored, removals = [], []
    for name in change.names:
        revisions = history(name)
        after = [one for one in revisions if one.version <= change.version][-1].definition
        _check_unchanged(on.library, name, after, revisions[-1].version)
        earlier = [one for one in revisions if one.version < change.version]
        before = earlier[-1].definition if earlier else None
        if before is not None:
            restored.append(pinned_now(on.library, before))
        else:
            removals.append(name)
    for name in removals:
        _check_not_called(on.library, name, gone=removals)
    upserts = repinned(on.library, restored)
    why = reason or f"take back library version {change.version}"
    draft = written("undo", change_id, upserts, before=on.library, author=author, reason=why)
    facts = {"undone": change.version, "tools_undone": list(change.names), "removed": removals}
    above = tuple(one for one in upserts if one.name not in change.names)
    unknown = dict.fromkeys((one.name for one in above), "it was not tried with what was restored")
    marked = Above(repinned=above, unknown=unknown)
    version = on.library.version + 1
    return Step(
        drafts=(
            replace(draft, facts={**draft.facts, **facts}),
            *(marks(author, upserts[0], marked, version=version) if above else ()),
        ),
        upserts=upserts,
        removals=tuple(removals),
        change_id=change_id,
        author=author,
        reason=why,
    )


def _check_unchanged(
    library: Library, name: str, after: ToolDefinition | None, newest: int
) -> None:
    current = library.get(name)
    expected = None if after is None else pinned_now(library, after).digest
    if (None if current is None else pinned_now(library, current.definition).digest) != expected:
        raise UsageError(
            f"{name!r} was changed again by library version {newest}; take that back first "
            f"('agentkit rollback {name}'), or choose a version ('agentkit rollback {name} --to "
            "VERSION')"
        )


def _check_not_called(library: Library, name: str, *, gone: Sequence[str]) -> None:
    callers = [one for one in library.dag.parents.get(name, ()) if one not in gone]
    if callers:
        raise UsageError(
            f"{name!r} was new, so taking it back removes it, and "
            f"{', '.join(map(repr, callers))} would miss it; take that back first"
        )


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
            f"no proposal serves as {which!r}; 'agentkit rollback {which} --to VERSION' goes back "
            "to an earlier revision"
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
    if removals:
        _check_not_called(on.library, scribe.tool_name, gone=removals)
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


# --- What a person writes into the library directly, unexamined, and what that means for prop ----
# What a person writes into the library directly, unexamined, and what that means for proposals.


def edit_step(on: Position, change: LibraryChange, author: Author, operation: Operation) -> Step:
    """A change made outside of proposals.

    Where it gives a tool other words than it had, or takes it away, the proposal that served as
    that tool is superseded: what it brought is gone.

    Args:
        on: The newest position.
        change: What is to be written.
        author: Who writes.
        operation: What kind of change it is.
    """
    replaced = [*_reworded(on, change), *change.removals]
    version = on.library.version + 1
    superseded = [
        Scribe.of(active, author, version=version).draft(
            "superseded", f"{author.name} wrote another definition ({operation})"
        )
        for active in map(on.ledger.active, replaced)
        if active is not None
    ]
    return _written(on, change, author, operation, about=superseded, replaced=replaced)


def restoring_step(on: Position, change: LibraryChange, author: Author, *, to_version: int) -> Step:
    """A change that gives tools the definitions of an earlier version, as ``rollback_change``.

    What became active on them since then is rolled back.

    Args:
        on: The newest position.
        change: What is to be written.
        author: Who writes.
        to_version: That version.
    """
    version = on.library.version + 1
    rolled_back = [
        Scribe.of(record, author, version=version).draft("rolled_back", change.reason)
        for definition in change.upserts
        for record in reversed(_promoted_since(on.ledger, definition.name, to_version))
    ]
    return _written(on, change, author, "rollback", about=rolled_back)


def _written(
    on: Position,
    change: LibraryChange,
    author: Author,
    operation: Operation,
    *,
    about: Sequence[EventDraft],
    replaced: Sequence[str] = (),
) -> Step:
    provenance = Provenance(
        identity=change.proposal_id,
        is_new=False,
        operation=operation,
        reason=change.reason,
        evidence=change.evidence,
    )
    step = provenance.step(change.upserts, on.library, author, about=about, replaced=replaced)
    return replace(step, removals=change.removals)


def _reworded(on: Position, change: LibraryChange) -> Iterable[str]:
    """Tools that are there, and get another description or specification than they have."""
    for definition in change.upserts:
        tool = on.library.get(definition.name)
        if tool is None:
            continue
        before = tool.definition
        told = (before.description, before.specification)
        if told != (definition.description, definition.specification):
            yield definition.name


def _promoted_since(ledger: Ledger, tool_name: str, version: int) -> list[ProposalRecord]:
    records = (ledger.proposals[one] for one in ledger.promoted.get(tool_name, ()))
    return [
        record
        for record in records
        if record.activation is not None and record.activation.library_version > version
    ]
