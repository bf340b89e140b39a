"""Edits by hand as proposals: what a person made of a tool's file goes the way of every change.

A store that keeps tools in files that people edit, such as ``dir:``, offers the edits as data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from agentkit.errors import UsageError
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposal import Proposal, ProposalRecord
from agentkit.library.directory.files import HandEdit
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.library.merging import rebase
from agentkit.library.store import LibraryChange
from agentkit.tools.canonical import digest

EditOutcome: TypeAlias = Literal["proposed", "faulty", "deleted", "removed", "contained"]
"""What came of an edit: a proposal, which may be rejected; nothing, for the file can not be taken;
nothing, for the file was deleted and nobody said that the tool is to go, or the library changed it
meanwhile; the tool was taken out; nothing, for the library has all of it by now."""


@runtime_checkable
class EditedStore(Protocol):
    """A store whose tools stand in files that people edit."""

    def edits(self) -> tuple[HandEdit, ...]:
        """What people made of the files."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposedEdit:
    """What came of one edit.

    Attributes:
        edit: The edit.
        outcome: What came of it.
        record: Where its proposal stands; None where there is none.
    """

    edit: HandEdit
    outcome: EditOutcome
    record: ProposalRecord | None = None


async def propose_edits(
    edits: Iterable[HandEdit],
    manager: ToolManager,
    *,
    person: Author,
    reason: str = "",
    removes: bool = False,
) -> tuple[ProposedEdit, ...]:
    """Propose what a person edited, each tool by itself.

    Every check looks at an edit as at any other change, held against the definition that the person
    began with and moved onto the newest one. A file that is new is a tool that comes whole, as from
    an import. Proposing the same edit twice makes one proposal.

    Args:
        edits: What a store offers.
        manager: Of the library of that store.
        person: Who made the edits.
        reason: Why.
        removes: Take out the tools whose files were deleted, with an event that says so.

    Raises:
        UsageError: ``person`` is none.
        StoreError: The store failed. What was proposed before stays.
    """
    if person.kind != "person":
        raise UsageError(
            f"edits by hand are proposed by a person, not by the {person.kind} {person.name!r}"
        )
    return tuple([await _proposed(one, manager, person, reason, removes=removes) for one in edits])


async def _proposed(
    edit: HandEdit, manager: ToolManager, person: Author, reason: str, *, removes: bool
) -> ProposedEdit:
    if edit.faults:
        return ProposedEdit(edit=edit, outcome="faulty")
    if edit.after is None:
        if not removes or edit.is_conflict:
            return ProposedEdit(edit=edit, outcome="deleted")
        manager.edit(lambda held: _removal(held, edit, reason))
        return ProposedEdit(edit=edit, outcome="removed")
    if _is_contained(edit):
        return ProposedEdit(edit=edit, outcome="contained")
    proposal = Proposal.of(
        edit.before,
        edit.after,
        stream="import" if edit.before is None else "person",
        author=person,
        reason=reason or f"{edit.file.name} was edited by hand",
    )
    record = await manager.submit_async(proposal)
    return ProposedEdit(edit=edit, outcome="proposed", record=record)


def _is_contained(edit: HandEdit) -> bool:
    """Whether the library has what the person wanted, and more."""
    if edit.before is None or edit.after is None or edit.newest is None:
        return False
    merged = rebase(edit.before, edit.after, edit.newest)
    return not merged.conflicts and merged.definition.digest == edit.newest.digest


def _removal(held: Library, edit: HandEdit, reason: str) -> LibraryChange | None:
    """The change that takes a tool out, unless it is gone or became another one meanwhile."""
    tool = held.get(edit.name)
    if tool is None or edit.newest is None or tool.definition.digest != edit.newest.digest:
        return None
    return LibraryChange(
        proposal_id=f"deleted-{digest([edit.name, tool.definition.digest, held.version])[:20]}",
        removals=(edit.name,),
        reason=reason or f"{edit.file.name} was deleted by hand",
    )
