"""Comparing a library with what its events say: the chain guards the definitions too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentkit.errors import AgentKitError, StoreFormatError
from agentkit.library.abilities import ChangeLog
from agentkit.library.chain_faults import ChainFault
from agentkit.library.events import EventKind, LibraryEvent
from agentkit.library.store import ToolRevision, ToolStore
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition

_WRITES: frozenset[EventKind] = frozenset({"written", "active", "rolled_back"})
"""Kinds of events that come with definitions, whose facts may tell of several."""


def verify_library(store: ToolStore, events: Iterable[LibraryEvent]) -> tuple[ChainFault, ...]:
    """What in a store is not as the events say, in the order of the events.

    An event says which digests tools had at its library version: its own tool in ``digest_after``;
    those of a change of several tools in the facts ``tools``, and of very many one digest over all
    of them (``count``, ``digest``); composites that got new pins in the fact ``repinned``; and in
    ``removed``, which are gone. Digests are computed anew from what the store holds, so that a
    definition that was changed behind the store's back is found. A whole chain comes first: see
    ``verify_chain``.

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
    held = _Held(store)
    found = [fault for event in kept if event.library_version for fault in _readable(event, held)]
    return (*found, *_untold(kept, store.versions()))


def _readable(event: LibraryEvent, held: _Held) -> Iterator[ChainFault]:
    """The faults of an event; what the store itself refuses to read is one."""
    try:
        yield from _faults(event, held)
    except StoreFormatError as error:
        yield _fault(event, f"tells of what the store does not read: {error}")


def _faults(event: LibraryEvent, held: _Held) -> Iterator[ChainFault]:
    version = event.library_version
    for name, told in told_digests(event):
        actual = held.digest(name, version)
        if actual != told:
            yield _fault(
                event,
                f"says that {name!r} had {_words(told)} at library version {version}, but the "
                f"store holds {_words(actual)}",
            )
    bulk = bulk_of(event)
    if bulk is not None:
        made = held.made_by(version)
        if (len(made), digest(made)) != bulk:
            yield _fault(
                event,
                f"says that library version {version} brought {bulk[0]:,} definitions "
                f"with a digest over all of them, but the store holds {len(made):,}, or others",
            )


def bulk_of(event: LibraryEvent) -> tuple[int, object] | None:
    """How many definitions a very large change brought, and the digest over all of theirs."""
    count = event.facts.get("count")
    if event.kind != "written" or not isinstance(count, int):
        return None
    return count, event.facts.get("digest")


def told_digests(event: LibraryEvent) -> Iterator[tuple[str, str]]:
    """The tools of which an event tells, with the digest of each; empty for one that is gone.

    Those of a very large change are not among them: see ``bulk_of``.
    """
    if event.digest_after:
        yield event.tool_name, event.digest_after
    if event.kind not in _WRITES:
        return
    for part in ("tools", "repinned"):
        digests = event.facts.get(part)
        if isinstance(digests, Mapping):
            yield from ((name, told) for name, told in digests.items() if isinstance(told, str))
    removed = event.facts.get("removed")
    if isinstance(removed, list):
        yield from ((name, "") for name in removed if isinstance(name, str))


class _Held:
    """What a store holds, each history read once.

    Args:
        store: Where the definitions are kept.
    """

    def __init__(self, store: ToolStore) -> None:
        self._store = store
        self._histories: dict[str, Sequence[ToolRevision]] = {}

    def digest(self, name: str, version: int) -> str:
        """The digest that a tool had at a library version; empty when it was not there."""
        earlier = [one for one in self._history(name) if one.version <= version]
        definition = earlier[-1].definition if earlier else None
        return "" if definition is None else _digest(definition)

    def made_by(self, version: int) -> dict[str, str]:
        """The digests of the definitions that one library version brought, by tool."""
        if isinstance(self._store, ChangeLog):  # thousands of tools are then read in one go
            made = next(iter(self._store.changes(after=version - 1)), None)
            if made is not None and made.version == version:
                return {one.name: _digest(one) for one in made.change.upserts}
        return {
            tool.name: self.digest(tool.name, version)
            for tool in self._store.load(version)
            if any(one.version == version for one in self._history(tool.name))
        }

    def _history(self, name: str) -> Sequence[ToolRevision]:
        if name not in self._histories:
            self._histories[name] = self._store.history(name)
        return self._histories[name]


def _fault(event: LibraryEvent, words: str) -> ChainFault:
    message = f"event {event.sequence} {words}"
    return ChainFault(sequence=event.sequence, code="definition", message=message)


def _words(told: str) -> str:
    return f"the definition with digest {told[:12]}" if told else "none"


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
