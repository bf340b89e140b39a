"""The kill switch: runs use the version that a person names, whatever happens to the library."""

from __future__ import annotations

from agentkit.errors import UsageError
from agentkit.evolution.lifecycle.ledger import WHOLE_LIBRARY, Ledger
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.library.pins import repinned
from agentkit.library.store import ToolStore


def pin_step(
    on: Position, version: int, tool_name: str, author: Author, reason: str, *, store: ToolStore
) -> Step | None:
    """Pin a tool, or with an empty name the whole library; None when it is pinned so already.

    Raises:
        StoreError: There is no such version.
        ToolNotFoundError: The library has no such tool, then or now.
    """
    then = store.load(version)
    if tool_name:
        then[tool_name], on.library[tool_name]
    if on.ledger.pins.get(tool_name) == version:
        return None
    digest = then[tool_name].definition.digest if tool_name else then.digest
    pinned = EventDraft(
        kind="pinned",
        author=author,
        reason=reason,
        tool_name=tool_name,
        library_version=on.library.version,
        facts={"version": version, "digest": digest},
    )
    return Step(drafts=(pinned,))


def unpin_step(on: Position, tool_name: str, author: Author, reason: str) -> Step | None:
    """Take a pin away; None when there is none.

    Raises:
        UsageError: The tool is not pinned, but the whole library is.
    """
    if tool_name not in on.ledger.pins:
        if tool_name and WHOLE_LIBRARY in on.ledger.pins:
            raise UsageError(
                f"{tool_name!r} has no pin of its own: the whole library is pinned to version "
                f"{on.ledger.pins[WHOLE_LIBRARY]}; unpin that"
            )
        return None
    unpinned = EventDraft(
        kind="unpinned",
        author=author,
        reason=reason,
        tool_name=tool_name,
        library_version=on.library.version,
    )
    return Step(drafts=(unpinned,))


def served_library(store: ToolStore, newest: Library, ledger: Ledger) -> Library:
    """The library that runs use: the newest, but for what is pinned.

    A pinned tool has the definition that it had in its version; composites above are pinned to
    that one. A tool that is gone since stays gone.

    Args:
        store: Where earlier versions are.
        newest: The newest library, with or without code.
        ledger: What is pinned.

    Raises:
        StoreError: The store failed.
        LibraryError: Composites above call each other in a circle, so no pin can be moved.
    """
    whole = ledger.pinned_version()
    if whole is not None:
        then = store.load(whole)
        return then.with_tools(
            newest[tool.name].with_definition(tool.definition)
            for tool in then
            if tool.name in newest
        )
    held = [
        store.load(version)[name].definition
        for name, version in ledger.pins.items()
        if name in newest
    ]
    changed = [one for one in held if one != newest[one.name].definition]
    if not changed:
        return newest
    return newest.with_tools(
        newest[definition.name].with_definition(definition)
        for definition in repinned(newest, changed)
    )
