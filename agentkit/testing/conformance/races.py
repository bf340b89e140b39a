"""Many writers and readers of one store at once, as threads of one program.

Proposals of several writers change the same ten tools, so that whoever builds on a stale snapshot
loses an update. Our own test suite runs the same with several processes, and kills them.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from agentkit.errors import StaleChainError, StaleVersionError, StoreError, StoreUnavailableError
from agentkit.library.chain_check import verify_chain, verify_library
from agentkit.library.changes import now
from agentkit.library.event_chain import EventDraft, chained
from agentkit.library.events import Author, LibraryEvent
from agentkit.library.store import LibraryChange, Store
from agentkit.testing.store_fixtures import StoreFixtures, together
from agentkit.testing.store_writer import TOOLS_EACH, batch, commit_many
from agentkit.tools.definition import Description, ToolDefinition

TOOLS = 10
"""Tools that the proposals change, one each, in turn."""


class StoreRaceConformance(StoreFixtures):
    """What several writers and readers do to one store at the same time."""

    def test_threads_lose_no_proposal(self, store: Store) -> None:
        """Threads that change the same tools: each proposal once, no gap, no update lost."""

        def offer(first: int) -> None:
            racer = Racer(store)
            for number in range(first, first + 15):
                racer.offer(number)

        assert together([partial(offer, 15 * place) for place in range(4)]) == [None] * 4
        assert race_faults(store, 60) == ()

    def test_stale_writers_change_nothing(self, store: Store) -> None:
        """However many build on old snapshots at once, none of them leaves a trace."""
        for version in range(4):
            store.commit(batch("p", version), expected_version=version)
        changes = [
            LibraryChange(
                proposal_id=f"late {place}",
                upserts=(ToolDefinition(name="p_0", description=Description(summary="late")),),
            )
            for place in range(8)
        ]
        outcomes = together(
            [
                partial(store.commit, change, expected_version=place % 4)
                for place, change in enumerate(changes)
            ]
        )
        assert all(isinstance(one, StaleVersionError) for one in outcomes)
        assert list(store.versions()) == [1, 2, 3, 4]
        assert [one.proposal_id for one in store.history("p_0")] == [f"p-{n}" for n in range(4)]

    def test_readers_see_whole_snapshots_while_threads_commit(self, store: Store) -> None:
        """What is read during commits is one version whole, and never an older one than before."""
        over = threading.Event()
        works: list[Callable[[], None]] = [
            partial(read_whole_snapshots, store, over) for _ in range(3)
        ]
        works.append(partial(_write, store, over))
        assert together(works) == [None] * 4


class Racer:
    """Offers proposals and remembers what came of each try.

    Args:
        store: Where they are offered.
        patience_seconds: How long to offer one again to a store that can not be reached.
    """

    def __init__(self, store: Store, *, patience_seconds: float = 0) -> None:
        self.answers: Counter[str] = Counter()
        self._patience_seconds = patience_seconds
        self._author = Author(kind="program", name=f"racer {os.getpid()}")
        self._store = store
        self._last: LibraryEvent | None = None

    def offer(self, number: int) -> None:
        """Offer one proposal until the store has it.

        Raises:
            StoreUnavailableError: The store was away for longer than the racer is patient.
            StoreError: The store lost events that it had told of.
        """
        deadline = time.monotonic() + self._patience_seconds
        while True:
            try:
                if self._tried(number):
                    return
                self.answers["stale"] += 1
            except StoreUnavailableError:
                self.answers["unavailable"] += 1
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def told(self, offered: int) -> Counter[str]:
        """How many of the proposals are its own work, and how many it found made by others.

        The events say so. A version does not: that of the next one may be another racer's, who
        made the same proposal a moment before.
        """
        made = sum(event.author == self._author for event in self._store.events())
        return self.answers + Counter(made=made, known=offered - made)

    def _tried(self, number: int) -> bool:
        version = self._store.load().version
        self._catch_up()
        change = proposal(number, self._last, version=version + 1, author=self._author)
        try:
            self._store.commit(change, expected_version=version)
        except StaleChainError as error:
            if self._last is not None and error.actual < self._last.sequence:
                raise StoreError(
                    f"the store told of event {self._last.sequence} and ends with event "
                    f"{error.actual} now: it lost what it had acknowledged"
                ) from error
            return False
        except StaleVersionError:
            return False
        return True

    def _catch_up(self) -> None:
        held = self._store.events(after=self._last.sequence if self._last else 0)
        self._last = held[-1] if held else self._last


def proposal(
    number: int, last: LibraryEvent | None, *, version: int, author: Author
) -> LibraryChange:
    """The change of that number: one tool gets a text that names it, and an event tells of it."""
    name = f"tool-{number % TOOLS}"
    tool = ToolDefinition(name=name, description=Description(summary=_id(number)))
    draft = EventDraft(
        kind="active",
        author=author,
        proposal_id=_id(number),
        tool_name=name,
        library_version=version,
        digest_after=tool.digest,
    )
    events = chained(last, [draft], at=now())
    return LibraryChange(proposal_id=_id(number), upserts=(tool,), events=events)


def race_faults(store: Store, proposals: int) -> tuple[str, ...]:
    """What a store lacks, has twice, or mixed up after a race of so many proposals; all are told.

    Each proposal made one version, the versions have no gap, the events tell the same, and every
    tool says what the last proposal that changed it said: no update was lost.
    """
    return tuple(_race_faults(store, proposals))


def _race_faults(store: Store, proposals: int) -> Iterator[str]:
    versions, events = list(store.versions()), list(store.events())
    if versions != list(range(1, proposals + 1)):
        yield f"{proposals} proposals made {len(versions)} versions, the last is {versions[-1:]}"
    if [event.library_version for event in events] != versions:
        yield f"{len(events)} events do not tell of the {len(versions)} versions in order"
    ids = Counter(event.proposal_id for event in events)
    wanted = {_id(number) for number in range(proposals)}
    yield from (f"{one} was never made" for one in sorted(wanted - ids.keys()))
    yield from (f"{one} was made {count} times" for one, count in ids.items() if count > 1)
    yield from (f"{one} was never offered" for one in sorted(ids.keys() - wanted))
    yield from (fault.message for fault in verify_chain(events))
    yield from (fault.message for fault in verify_library(store, events))
    newest, library = {event.tool_name: event.proposal_id for event in events}, store.load()
    for name, said in newest.items():
        found = library.get(name)
        text = found.definition.description.summary if found else "nothing"
        if text != said:
            yield f"{name} says {text}, but {said} was the last to change it"


def _id(number: int) -> str:
    return f"proposal-{number}"


def _write(store: Store, over: threading.Event) -> None:
    try:
        commit_many(store, "p", 30)
    finally:
        over.set()


def read_whole_snapshots(store: Store, over: threading.Event) -> None:
    """Read until nobody writes any more; each look is checked by itself and against the last."""
    version = seen = 0
    while True:
        is_last = over.is_set()
        library = store.load()
        texts = {tool.definition.description.summary for tool in library}
        assert library.version >= version
        assert len(library) == (TOOLS_EACH if library.version else 0)
        assert texts == ({f"text {library.version - 1}"} if library.version else set())
        events = store.events()
        assert len(events) >= max(seen, library.version)
        assert verify_chain(events) == ()
        version, seen = library.version, len(events)
        if is_last:
            return
