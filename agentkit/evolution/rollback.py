"""Take changes back, whoever made them, and write changes outside of proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agentkit.errors import UsageError
from agentkit.evolution.ledger import WHOLE_LIBRARY, Ledger
from agentkit.evolution.proposal import ProposalRecord
from agentkit.evolution.repository import LibraryState, Transaction
from agentkit.library.events import Author, EventDraft, LibraryEvent, Operation
from agentkit.library.library import Library
from agentkit.library.pins import repinned, with_current_pins
from agentkit.library.store import LibraryChange, ToolRevision, ToolStore
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

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
        if history:
            changed = [which]
        else:
            before, after = store.load(version - 1), store.load(version)
            both = (*after.all_definitions, *before.all_definitions)
            every = dict.fromkeys(one.name for one in both)
            changed = [one for one in every if _digest(before, one) != _digest(after, one)]
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


def _digest(library: Library, name: str) -> str:
    tool = library.get(name)
    return "" if tool is None else tool.definition.digest


def undo(
    state: LibraryState,
    change: Undoable,
    author: Author,
    reason: str,
    *,
    history: History,
    change_id: str,
) -> Transaction:
    """Give the tools of a change the definitions that they had before it; new ones are removed.

    Args:
        state: The newest state.
        change: What is taken back.
        author: Who takes it back.
        reason: Why.
        history: The revisions of a tool.
        change_id: Of the change that takes it back.

    Raises:
        UsageError: A tool was changed again since then, or others call one that would go.
    """
    library = state.library
    for name in change.names:
        made = [one for one in history(name) if one.version <= change.version][-1].definition
        current = library.get(name)
        if not _is_same(library, None if current is None else current.definition, made):
            raise UsageError(
                f"{name!r} was changed again by library version {history(name)[-1].version}; take "
                f"that back first ('agentkit rollback {name}'), or choose a version ('agentkit "
                f"rollback {name} --to VERSION')"
            )
    upserts, removals = _as_before(library, change.names, change.version, history)
    back = LibraryChange(
        proposal_id=change_id,
        upserts=upserts,
        removals=removals,
        author=author.name,
        reason=reason or f"take back library version {change.version}",
    )
    done = Transaction.outside_proposals("undo", back, state, author)
    facts = {
        "undone": change.version,
        "tools_undone": list(change.names),
        "removed": list(removals),
    }
    (draft,) = done.drafts
    return replace(done, drafts=(replace(draft, facts={**draft.facts, **facts}),))


def _as_before(
    library: Library, names: Iterable[str], version: int, history: History
) -> tuple[tuple[ToolDefinition, ...], tuple[str, ...]]:
    """The definitions that tools had before a library version, and those that were not there.

    Raises:
        UsageError: Others call one that would go.
    """
    restored, removals = [], []
    for name in names:
        earlier = [one.definition for one in history(name) if one.version < version]
        if earlier and earlier[-1] is not None:
            restored.append(_pinned_now(library, earlier[-1]))
        elif name in library:
            removals.append(name)
    for name in removals:
        callers = [one for one in library.dag.parents.get(name, ()) if one not in removals]
        if callers:
            raise UsageError(
                f"{name!r} was new, so taking it back removes it, and "
                f"{', '.join(map(repr, callers))} would miss it; take that back first"
            )
    return (repinned(library, restored) if restored else ()), tuple(removals)


def _is_same(library: Library, one: ToolDefinition | None, other: ToolDefinition | None) -> bool:
    if one is None or other is None:
        return one is other
    return _pinned_now(library, one) == _pinned_now(library, other)


def _pinned_now(library: Library, definition: ToolDefinition) -> ToolDefinition:
    """An earlier definition, which for a composite pins its children as they are now."""
    if not definition.is_composite:
        return definition
    return with_current_pins(library.with_tools([definition]), definition)


def roll_back(
    state: LibraryState, which: str, author: Author, reason: str, *, history: History
) -> Transaction | None:
    """Take a proposal back, and all that became active on the same tool after it.

    The tool gets the very definition that it had before, as a new revision; nothing is deleted.
    Nothing is tried first, so that nothing can stand in the way: composites above are pinned anew.
    One in canary is taken out of it. None when it is done already.

    Args:
        state: The newest state.
        which: A proposal's id, or the name of a tool, whose last promotion is taken back.
        author: Who takes it back.
        reason: Why.
        history: The revisions of a tool.

    Raises:
        UsageError: There is no such proposal or tool, or nothing of it to take back.
    """
    record = _wanted(state, which)
    if record.state == "rolled_back":
        return None
    if record.state == "canary":
        return Transaction(drafts=(record.event("rolled_back", author, reason),))
    proposals, tool = state.ledger.proposals, record.tool_name
    stack = state.ledger.promoted.get(tool, ())
    if record.proposal_id not in stack or record.activation is None:
        raise UsageError(
            f"the proposal {record.proposal_id!r} is {record.state} ({record.last_word}); only "
            "what serves, or what later proposals were built on, can be taken back"
        )
    taken = stack[stack.index(record.proposal_id) :]
    made = record.activation.library_version
    upserts, removals = _as_before(state.library, (tool,), made, history)
    changes = bool(upserts or removals)
    before = state.library[tool].definition.digest if changes else ""
    after = upserts[0].digest if upserts else ""
    repins = {"repinned": {one.name: one.digest for one in upserts[1:]}} if upserts[1:] else {}
    drafts = []
    for proposal_id in reversed(taken):
        facts = repins if proposal_id == taken[-1] else {}
        draft = proposals[proposal_id].event("rolled_back", author, reason, **facts)
        drafts.append(replace(draft, digest_before=before, digest_after=after))
    if removals:
        gone = EventDraft(
            kind="written",
            author=author,
            reason=f"{tool!r} was new, and was taken back",
            tool_name=tool,
            facts={"operation": "rollback", "removed": list(removals)},
        )
        drafts.append(gone)
    change = LibraryChange(
        proposal_id=f"rollback-{taken[0]}" if changes else "",
        upserts=upserts,
        removals=removals,
        author=author.name,
        reason=reason or f"take back {', '.join(reversed(taken))}",
    )
    return Transaction(drafts=tuple(drafts), change=change)


def _wanted(state: LibraryState, which: str) -> ProposalRecord:
    promoted = state.ledger.promoted.get(which, ())
    if which in state.ledger.proposals or not (promoted or which in state.library):
        return state.ledger.find(which)
    trial = state.ledger.experiment(which)
    if trial is not None and trial.state == "canary":
        return trial
    if not promoted:
        raise UsageError(
            f"no proposal serves as {which!r}; 'agentkit rollback {which} --to VERSION' goes back "
            "to an earlier revision"
        )
    return state.ledger.proposals[promoted[-1]]


# --- What a person writes into the library directly, unexamined -----------------------------------


def edit(
    state: LibraryState, change: LibraryChange, author: Author, operation: Operation
) -> Transaction:
    """A change made outside of proposals.

    Where it gives a tool other words than it had, or takes it away, the proposal that served as
    that tool is superseded: what it brought is gone.

    Args:
        state: The newest state.
        change: What is to be written.
        author: Who writes.
        operation: What kind of change it is.
    """
    replaced = [one.name for one in change.upserts if _gets_other_words(state.library, one)]
    replaced += change.removals
    why = f"{author.name} wrote another definition ({operation})"
    superseded = [
        active.event("superseded", author, why)
        for active in map(state.ledger.active, replaced)
        if active is not None
    ]
    return Transaction.outside_proposals(
        operation, change, state, author, about=superseded, replaced=replaced
    )


def _gets_other_words(library: Library, after: ToolDefinition) -> bool:
    tool = library.get(after.name)
    if tool is None:
        return False
    before = tool.definition
    told = (before.description, before.specification)
    return told != (after.description, after.specification)


def restore(
    state: LibraryState, change: LibraryChange, author: Author, *, to_version: int
) -> Transaction:
    """A change that gives tools the definitions of an earlier version, as ``rollback_change``.

    What became active on them since then is rolled back.

    Args:
        state: The newest state.
        change: What is to be written.
        author: Who writes.
        to_version: That version.
    """
    ledger, rolled_back = state.ledger, []
    for definition in change.upserts:
        promoted = (ledger.proposals[one] for one in ledger.promoted.get(definition.name, ()))
        rolled_back += [
            record.event("rolled_back", author, change.reason)
            for record in reversed([*promoted])
            if record.activation is not None and record.activation.library_version > to_version
        ]
    change = replace(change, upserts=repinned(state.library, change.upserts))
    return Transaction.outside_proposals("rollback", change, state, author, about=rolled_back)


# --- The kill switch ------------------------------------------------------------------------------


def promote_vectors(
    state: LibraryState, digest: str, figures: JsonObject, author: Author, reason: str
) -> Transaction | None:
    """Have retrieval read trained word vectors; None when it does so already."""
    if state.ledger.vectors[-1:] == (digest,):
        return None
    facts = {"digest": digest, "figures": dict(figures)}
    draft = EventDraft(kind="vectors_promoted", author=author, reason=reason, facts=facts)
    return Transaction(drafts=(draft,))


def take_back_vectors(state: LibraryState, author: Author, reason: str) -> Transaction:
    """Have retrieval read the vectors of before, or none.

    Raises:
        UsageError: None are promoted.
    """
    if not state.ledger.vectors:
        raise UsageError("no trained word vectors are promoted; there is nothing to take back")
    facts = {"digest": state.ledger.vectors[-1]}
    draft = EventDraft(kind="vectors_taken_back", author=author, reason=reason, facts=facts)
    return Transaction(drafts=(draft,))


def pin(
    state: LibraryState, version: int, tool_name: str, author: Author, reason: str, *, then: Library
) -> Transaction | None:
    """Pin a tool, or with an empty name the whole library; None when it is pinned so already.

    Args:
        state: The newest state.
        version: The library version that runs are to use.
        tool_name: The tool; empty for all.
        author: Who pins it.
        reason: Why.
        then: The library at that version.

    Raises:
        ToolNotFoundError: The library has no such tool, then or now.
    """
    digest = then.digest
    if tool_name:
        digest, _ = then[tool_name].definition.digest, state.library[tool_name]
    if state.ledger.pins.get(tool_name) == version:
        return None
    pinned = EventDraft(
        kind="pinned",
        author=author,
        reason=reason,
        tool_name=tool_name,
        facts={"version": version, "digest": digest},
    )
    return Transaction(drafts=(pinned,))


def unpin(state: LibraryState, tool_name: str, author: Author, reason: str) -> Transaction | None:
    """Take a pin away; None when there is none.

    Raises:
        UsageError: The tool is not pinned, but the whole library is.
    """
    pins = state.ledger.pins
    if tool_name not in pins:
        if tool_name and WHOLE_LIBRARY in pins:
            raise UsageError(
                f"{tool_name!r} has no pin of its own: the whole library is pinned to version "
                f"{pins[WHOLE_LIBRARY]}; unpin that"
            )
        return None
    unpinned = EventDraft(
        kind="unpinned",
        author=author,
        reason=reason,
        tool_name=tool_name,
    )
    return Transaction(drafts=(unpinned,))
