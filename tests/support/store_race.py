"""Programs that commit to one store at the same time.

Proposals of several writers change the same ten tools, so that whoever builds on a stale snapshot
loses an update, and ``race_faults`` tells.
``run_race`` starts them. Each runs ``python -m support.store_race URL FIRST COUNT OF PATIENCE``: it
offers COUNT proposals of OF, from number FIRST around, and prints JSON; a store that cannot be
reached is asked again for PATIENCE seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from agentkit.errors import StaleChainError, StaleVersionError, StoreError, StoreUnavailableError
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.changes import now
from agentkit.library.events import Author, EventDraft, LibraryEvent, chained
from agentkit.library.opening import open_store
from agentkit.library.store import LibraryChange, Store
from agentkit.tools.definition import Description, ToolDefinition

_TESTS = str(Path(__file__).parents[1])


def environment() -> dict[str, str]:
    """The variables with which a program finds ``support``."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([_TESTS, os.environ.get("PYTHONPATH", "")])}


TOOLS = 10
"""Tools that the proposals change, one each, in turn."""


class Racer:
    """Offers proposals and remembers what came of each try.

    Args:
        store: Where they are offered.
        patience_seconds: How long to offer one again to a store that cannot be reached.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class RaceReport:
    """What came of a race.

    Attributes:
        proposals: How many there were to be committed.
        made: Commits that made a version, of all writers.
        known: Offers that another writer had made already.
        stale: Tries that met a faster writer.
        unavailable: Tries that met a store which could not be reached.
        seconds: From the start of all writers to the end of the last one.
    """

    proposals: int
    made: int
    known: int
    stale: int
    unavailable: int
    seconds: float


def run_race(
    url: str, *, writers: int, each: int, is_shared: bool = False, patience_seconds: float = 0
) -> RaceReport:
    """Let programs commit at the same time, and wait for all of them.

    Args:
        url: The store, which is empty.
        writers: How many programs.
        each: How many proposals each of them offers.
        is_shared: All offer the same proposals, each from another one on.
        patience_seconds: How long they offer one again to a store that cannot be reached.

    Raises:
        StoreError: A program failed; what it said stands on stderr.
    """
    proposals = each if is_shared else writers * each
    step = proposals // writers if is_shared else each
    with ExitStack() as running:
        racers = [
            running.enter_context(_start(url, place * step, each, proposals, patience_seconds))
            for place in range(writers)
        ]
        for racer in racers:
            _said(racer)  # that it has opened the store
        began = time.perf_counter()
        for racer in racers:
            _tell(racer)
        answers = [Counter(json.loads(_said(racer))) for racer in racers]
        seconds = time.perf_counter() - began
    total = Counter[str]()
    for answer in answers:
        total.update(answer)
    return RaceReport(
        proposals=proposals,
        made=total["made"],
        known=total["known"],
        stale=total["stale"],
        unavailable=total["unavailable"],
        seconds=seconds,
    )


def _start(
    url: str, first: int, count: int, of: int, patience_seconds: float
) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "support.store_race"]
    return subprocess.Popen(
        [*program, url, *map(str, (first, count, of, patience_seconds))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def _said(racer: subprocess.Popen[str]) -> str:
    assert racer.stdout is not None
    line = racer.stdout.readline()
    if not line:
        raise StoreError(f"a writer of the race failed with exit code {racer.wait()}")
    return line


def _tell(racer: subprocess.Popen[str]) -> None:
    assert racer.stdin is not None
    racer.stdin.write("go\n")
    racer.stdin.flush()


def main(arguments: Sequence[str]) -> None:
    """Offer proposals once told to, and print what came of it."""
    url, (first, count, of) = arguments[0], map(int, arguments[1:4])
    with closing(open_store(url)) as store:
        racer = Racer(store, patience_seconds=float(arguments[4]))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        if not sys.stdin.readline():
            return  # whoever started the race is gone
        for number in range(first, first + count):
            racer.offer(number % of)
        sys.stdout.write(json.dumps(racer.told(count)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
