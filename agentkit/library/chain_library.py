"""Comparing a library with what its events say: the chain guards the definitions too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agentkit.errors import AgentKitError
from agentkit.library.chain_faults import ChainFault
from agentkit.library.events import LibraryEvent
from agentkit.library.store import ToolRevision, ToolStore
from agentkit.tools.definition import ToolDefinition


def verify_library(store: ToolStore, events: Iterable[LibraryEvent]) -> tuple[ChainFault, ...]:
    """What in a store is not as the events say, in the order of the events.

    An event with a ``digest_after`` says that its tool had that digest at its library version. The
    digest is computed anew from what the store holds, so that a definition that was changed behind
    the store's back is found. A whole chain comes first: see ``verify_chain``.

    Library versions that no event tells of are a note: they were written around the Tool Manager.

    Args:
        store: Where the definitions are kept.
        events: All events of the same store.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> from agentkit.library import LibraryChange
        >>> store = open_store("memory:")
        >>> add = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> store.commit(add, expected_version=0)
        1
        >>> [note.message for note in verify_library(store, store.events())]
        ['no event tells of library version 1']
    """
    kept = tuple(events)
    histories: dict[str, Sequence[ToolRevision]] = {}
    found: list[ChainFault] = []
    for event in kept:
        if event.digest_after and event.library_version:
            if event.tool_name not in histories:
                histories[event.tool_name] = store.history(event.tool_name)
            found += _definition(event, histories[event.tool_name])
    return (*found, *_untold(kept, store.versions()))


def _definition(event: LibraryEvent, history: Sequence[ToolRevision]) -> Iterator[ChainFault]:
    earlier = [one for one in history if one.version <= event.library_version]
    held = earlier[-1].definition if earlier else None
    actual = "none" if held is None else _digest(held)
    if actual != event.digest_after:
        has = "none" if held is None else f"one with digest {actual[:12]}"
        yield ChainFault(
            sequence=event.sequence,
            code="definition",
            message=f"event {event.sequence} says that {event.tool_name!r} had the definition with "
            f"digest {event.digest_after[:12]} at library version {event.library_version}, but the "
            f"store holds {has}",
        )


def _digest(definition: ToolDefinition) -> str:
    """The digest of what a definition says, whatever the store keeps as its digest."""
    try:
        return ToolDefinition.from_json(definition.to_json()).digest
    except (AgentKitError, ValueError, RecursionError):
        return "unknown, for it is no definition"


def _untold(events: Iterable[LibraryEvent], versions: Iterable[int]) -> Iterator[ChainFault]:
    """Notes on versions without an event; those in a row are one note."""
    told = {e.library_version: e.sequence for e in events if e.digest_after or e.kind == "written"}
    after = 0
    rows: list[tuple[int, list[int]]] = []
    for version in versions:
        if version in told:
            after = told[version]
        elif rows and rows[-1][1][-1] == version - 1:
            rows[-1][1].append(version)
        else:
            rows.append((after, [version]))
    for sequence, row in rows:
        which = f"version {row[0]}" if len(row) == 1 else f"versions {row[0]} to {row[-1]}"
        message = f"no event tells of library {which}"
        yield ChainFault(sequence=sequence, code="untold", message=message)
