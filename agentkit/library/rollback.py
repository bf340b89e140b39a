"""Rolling one tool back: a new change that restores an old revision."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.errors import StoreError, ToolNotFoundError
from agentkit.library.changes import no_such_version
from agentkit.library.library import nearest_names
from agentkit.library.store import LibraryChange, ToolRevision, ToolStore
from agentkit.tools.definition import ToolDefinition


def rollback_change(
    store: ToolStore, tool_name: str, *, to_version: int, proposal_id: str, author: str = ""
) -> LibraryChange:
    """The change that gives a tool the definition it had at an earlier library version.

    Rolling back goes forward: committing the change makes a new version and a new entry in the
    tool's history, and nothing is ever deleted. A tool that was removed since comes back, as the
    last in the order.

    Args:
        store: Where the tool is kept.
        tool_name: The tool to restore.
        to_version: The library version whose definition of the tool is wanted.
        proposal_id: Identifies the change; see ``LibraryChange``.
        author: Who rolls back.

    Raises:
        ToolNotFoundError: The store never held a tool of that name.
        StoreError: There is no such version; or the tool was not in the library then; or the tool
            already is as it was then, so that there is nothing to do.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> store = open_store("memory:")
        >>> ping = ToolDefinition(name="ping")
        >>> store.commit(LibraryChange(proposal_id="add", upserts=(ping,)), expected_version=0)
        1
        >>> store.commit(LibraryChange(proposal_id="drop", removals=("ping",)), expected_version=1)
        2
        >>> change = rollback_change(store, "ping", to_version=1, proposal_id="restore")
        >>> store.commit(change, expected_version=2), "ping" in store.load()
        (3, True)
    """
    versions = store.versions()
    if to_version not in (0, *versions):
        raise no_such_version(to_version, versions)
    history = store.history(tool_name)
    if not history:
        known = store.load()
        nearest = nearest_names(tool_name, known.tools)
        raise ToolNotFoundError(tool_name, nearest=nearest, version=known.version)
    wanted = _definition_at(history, to_version)
    if wanted is None:
        raise StoreError(
            f"tool {tool_name!r} was not in the library at version {to_version} "
            f"(its history: {_outline(history)}), and rolling back never removes; "
            "to take it out, commit a change whose removals name it"
        )
    if _same(wanted, history[-1].definition):
        raise StoreError(
            f"tool {tool_name!r} already is as it was at version {to_version} "
            f"(its history: {_outline(history)}); there is nothing to roll back"
        )
    return LibraryChange(
        proposal_id=proposal_id,
        upserts=(wanted,),
        author=author,
        reason=f"roll {tool_name} back to library version {to_version}",
    )


def _definition_at(history: Sequence[ToolRevision], version: int) -> ToolDefinition | None:
    earlier = [revision for revision in history if revision.version <= version]
    return earlier[-1].definition if earlier else None


def _same(wanted: ToolDefinition, current: ToolDefinition | None) -> bool:
    return current is not None and wanted == current and wanted.origin == current.origin


def _outline(history: Sequence[ToolRevision]) -> str:
    return ", ".join(
        f"{revision.version} {'removed' if revision.definition is None else 'changed'}"
        for revision in history
    )
