"""What a person writes into the library directly, unexamined, and what that means for proposals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentkit.evolution.lifecycle.drafts import Scribe
from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.evolution.provenance import Provenance
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author
from agentkit.library.store import LibraryChange
from agentkit.library.written import Operation


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
