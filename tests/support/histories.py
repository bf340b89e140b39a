"""Histories to be written to stores, and all that a store tells of one, for comparing two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agentkit.episodes import Episode
from agentkit.library.events import Author, EventDraft, LibraryEvent, Signer, chained
from agentkit.library.library import Library
from agentkit.library.store import EpisodeFilter, LibraryChange, Store, ToolRevision
from agentkit.tools.definition import Description, Origin, ToolDefinition

_AUTHOR = Author(kind="person", name="Ada")
_AT = "2026-11-21T10:00:00+00:00"


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryStep:
    """One change of a history, and the episodes that are kept after it.

    Attributes:
        wishes: By tool name what it shall say and where it came from; None to take it out.
        events: How many events tell of it; without wishes they are all there is.
        reason: Why, for the change, its events and its episodes.
        episodes: How many are kept after it.
    """

    wishes: Mapping[str, tuple[str, str] | None] = field(default_factory=dict)
    events: int = 0
    reason: str = ""
    episodes: int = 0


def write_history(
    store: Store, steps: Iterable[HistoryStep], *, name: str = "step", signer: Signer | None = None
) -> None:
    """Write steps behind what a store holds.

    Args:
        store: Where to write.
        steps: What to write.
        name: Begins the ids of changes and episodes; two histories of one store need two.
        signer: Signs every second event.

    Example:
        >>> from agentkit import open_store
        >>> store = open_store("memory:")
        >>> steps = [HistoryStep(wishes={"a": ("says", "from")}), HistoryStep(wishes={"a": None})]
        >>> write_history(store, steps)
        >>> list(store.versions()), len(store.load(1)), len(store.load())
        ([1, 2], 1, 0)
    """
    for number, step in enumerate(steps):
        library = store.load()
        change = _change(step, library, store.events(), f"{name} {number}", signer)
        if change.makes_version or change.events:
            store.commit(change, expected_version=library.version)
        for place in range(step.episodes):
            output = {"é": [1.0, 1, None, step.reason]}
            episode_id = f"{name} {number}-{place}"
            store.append(Episode(episode_id=episode_id, request=step.reason, output=output))


def _change(
    step: HistoryStep,
    library: Library,
    held: Sequence[LibraryEvent],
    proposal_id: str,
    signer: Signer | None,
) -> LibraryChange:
    upserts = tuple(_definition(name, *wish) for name, wish in step.wishes.items() if wish)
    removals = tuple(name for name, wish in step.wishes.items() if wish is None and name in library)
    makes_version = bool(upserts or removals)
    draft = EventDraft(
        kind="written" if makes_version else "unpinned",
        author=_AUTHOR,
        reason=step.reason,
        library_version=library.version + makes_version,
    )
    last = held[-1] if held else None
    events: tuple[LibraryEvent, ...] = ()
    for number in range(step.events):
        events += chained(last, [draft], at=_AT, signer=signer if number % 2 == 0 else None)
        last = events[-1]
    return LibraryChange(
        proposal_id=proposal_id,
        upserts=upserts,
        removals=removals,
        author=_AUTHOR.name,
        reason=step.reason,
        evidence=("e1", step.reason),
        events=events,
    )


def _definition(name: str, summary: str, reference: str) -> ToolDefinition:
    return ToolDefinition(
        name=name, description=Description(summary=summary), origin=Origin(reference=reference)
    )


@dataclass(frozen=True, kw_only=True)
class Told:
    """All that a store tells of its history; two stores of one history tell the same.

    Attributes:
        libraries: Of every version the names of its tools in order, their digests and origins.
        histories: The revisions of every tool that was ever there.
        events: The chain.
        hashes: Of every event its hash and signature.
        episodes: In the order in which they were kept.
    """

    libraries: Sequence[tuple[int, Sequence[tuple[str, str, Origin]]]]
    histories: Mapping[str, Sequence[ToolRevision]]
    events: Sequence[LibraryEvent]
    hashes: Sequence[tuple[str, str]]
    episodes: Sequence[Episode]


def all_told(store: Store) -> Told:
    """Ask a store for everything, each version by itself."""
    libraries = [store.load(version) for version in store.versions()]
    names = dict.fromkeys(name for library in libraries for name in library.tools)
    events = tuple(store.events())
    return Told(
        libraries=[(library.version, list(_tools(library))) for library in libraries],
        histories={name: tuple(store.history(name)) for name in sorted(names)},
        events=events,
        hashes=[(event.hash, event.signature) for event in events],
        episodes=list(store.select(EpisodeFilter(oldest_first=True))),
    )


def _tools(library: Library) -> Iterator[tuple[str, str, Origin]]:
    for definition in library.definitions:
        yield definition.name, definition.digest, definition.origin


class BareStore:
    """A store of somebody else: the methods of the seam over another store, and nothing beyond.

    Args:
        store: Where everything is kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.load, self.versions, self.history = store.load, store.versions, store.history
        self.changes, self.events, self.commit = store.changes, store.events, store.commit
        self.append, self.get, self.select = store.append, store.get, store.select
        self.close = store.close
