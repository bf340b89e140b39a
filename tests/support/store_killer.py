"""Writers that are killed (SIGKILL) in the middle of commits, and what they leave of a store.

``python -m support.store_killer URL KILLS SEED`` prints JSON, or what it found on stderr.
It is a program of its own because it forks, which costs milliseconds where a new Python costs a
tenth of a second. Each writer first sends again what the one before it was sending when it died,
then commits changes in turn: one that gives several tools a new text, one of events alone. It is
killed at a moment drawn at random. Memory that both processes see tells what it was doing.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from agentkit.errors import StoreError
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.events import Author, EventDraft, LibraryEvent, chained
from agentkit.library.opening import open_store
from agentkit.library.store import LibraryChange, Store
from agentkit.tools.definition import Description, ToolDefinition
from support.store_race import environment

TOOLS = 5
"""Tools of each change; in every version all of them carry the same text."""

_PADDING = "x" * 5_000  # more than one page or packet, so that a write can tear
_MOST_COMMITS = 3  # a writer is killed in its first commit or in one of these behind it
_TRIES = 20  # so many writers for each one that is to die in a commit
_WRITER = Author(kind="program", name="writer")
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class KillReport:
    """What killing writers brought; that nothing was lost, doubled or torn is checked.

    Attributes:
        killed: Writers.
        in_commit: Of them, those that waited for the answer to a commit.
        unanswered: Of these, commits that the store has kept nevertheless.
        changes: That the store holds.
    """

    killed: int
    in_commit: int
    unanswered: int
    changes: int


class KilledWriterError(StoreError):
    """A store lost, doubled or tore what a killed writer had committed."""


def kill_writers(url: str, kills: int, *, seed: int = 1) -> KillReport:
    """Have writers killed in mid-commit in a program of its own, and check what they leave.

    Args:
        url: The store, which is empty.
        kills: So many are killed in the middle of a commit.
        seed: Draws the moments.

    Raises:
        KilledWriterError: Something was lost, doubled or torn.
    """
    program = [sys.executable, "-m", "support.store_killer", url, str(kills), str(seed)]
    ran = subprocess.run(program, capture_output=True, text=True, check=False, env=environment())
    if ran.returncode != 0:
        raise KilledWriterError(ran.stderr)
    return KillReport(**json.loads(ran.stdout))


class _Shared:
    """Numbers in memory that a writer keeps up to date for whoever kills it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 32)

    @property
    def sent(self) -> int:
        """Place of the last change that was handed to the store; 0 for none."""
        return self._get(0)

    @property
    def answered(self) -> int:
        """Place of the last change that the store has taken; 0 for none."""
        return self._get(1)

    @property
    def commits(self) -> int:
        """How many commits this writer has begun."""
        return self._get(2)

    @property
    def seconds(self) -> float:
        """How long the last commit took."""
        return self._get(3) / 1e9

    def begin(self, place: int) -> None:
        """Note that the change of that place is sent from now on."""
        self._set(0, place)
        self._set(2, self.commits + 1)

    def end(self, place: int, seconds: float) -> None:
        """Note that the store has taken it."""
        self._set(1, place)
        self._set(3, int(seconds * 1e9))

    def start_anew(self) -> None:
        """Another writer begins."""
        self._set(2, 0)

    def _get(self, at: int) -> int:
        (value,) = struct.unpack_from("q", self._memory, 8 * at)
        return int(value)

    def _set(self, at: int, value: int) -> None:
        struct.pack_into("q", self._memory, 8 * at, value)  # eight bytes at once, never half


def change_at(place: int, last: LibraryEvent | None) -> LibraryChange:
    """The change whose event has that place; the same whoever makes it, so that it is known again.

    Args:
        place: 1 for the first; odd ones make a version.
        last: The event before it.
    """
    makes_version, text = place % 2 == 1, f"change {place} {_PADDING}"
    tools = tuple(
        ToolDefinition(name=f"tool {i}", description=Description(summary=text))
        for i in range(TOOLS)
    )
    draft = EventDraft(
        kind="written" if makes_version else "assessed",
        author=_WRITER,
        proposal_id=f"change-{place}",
        library_version=_version_before(place + 1),
        facts={"tools": {tool.name: tool.digest for tool in tools}, "padding": _PADDING},
    )
    return LibraryChange(
        proposal_id=f"change-{place}",
        upserts=tools if makes_version else (),
        events=chained(last, [draft], at=(_EPOCH + timedelta(seconds=place)).isoformat()),
    )


def _version_before(place: int) -> int:
    return place // 2


def _write(url: str, shared: _Shared) -> None:
    """Send the last change again, whether it is kept or not; then commit while the parent lives."""
    parent = os.getppid()
    store = open_store(url)
    place = max(shared.sent, 1)
    last = _event_at(store, place - 1)
    while os.getppid() == parent:
        change = change_at(place, last)
        began = time.perf_counter()
        shared.begin(place)
        store.commit(change, expected_version=_version_before(place))
        shared.end(place, time.perf_counter() - began)
        last, place = change.events[-1], place + 1


def _event_at(store: Store, place: int) -> LibraryEvent | None:
    return store.events(after=place - 1)[0] if place else None


class _Killer:
    """Kills writers of one store and keeps count."""

    def __init__(self, url: str, seed: int) -> None:
        self._url = url
        self._draw = random.Random(seed)
        self._shared = _Shared()
        self._seen: LibraryEvent | None = None
        self._killed = self._in_commit = self._unanswered = 0

    def run(self, kills: int) -> KillReport:
        """Kill until as many writers died in mid-commit as asked for; look after each."""
        while self._in_commit < kills:
            if self._killed > _TRIES * (kills + 1):
                raise KilledWriterError(f"of {self._killed} writers {self._in_commit} died in time")
            self._kill_one()
            kept = self._look()
            self._killed += 1
            self._in_commit += self._shared.sent > self._shared.answered
            self._unanswered += kept - self._shared.answered
        return KillReport(
            killed=self._killed,
            in_commit=self._in_commit,
            unanswered=self._unanswered,
            changes=self._last_look(),
        )

    def _kill_one(self) -> None:
        """Start a writer and kill it: some commits later, and some time into the next one."""
        self._shared.start_anew()
        child = os.fork()
        if child == 0:
            try:
                _write(self._url, self._shared)
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                sys.stderr.flush()
                os._exit(1)
        commits = self._draw.randint(1, 1 + _MOST_COMMITS)
        while self._shared.commits < commits:
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                raise KilledWriterError("the writer ended by itself, see above")
            time.sleep(0.0001)
        time.sleep(self._draw.random() * self._shared.seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            raise KilledWriterError("the writer ended by itself, see above")

    def _look(self) -> int:
        """Check what a writer left behind what was there before; how many changes are kept."""
        before = self._seen.sequence if self._seen else 0
        with closing(open_store(self._url)) as store:
            new = _settled(store, before)
            _check_newest(store)
        kept = before + len(new)
        if not self._shared.answered <= kept <= self._shared.sent:
            raise KilledWriterError(
                f"{self._shared.answered} changes were taken and {self._shared.sent} sent, but "
                f"{kept} are kept"
            )
        self._seen = new[-1] if new else self._seen
        return kept

    def _last_look(self) -> int:
        """Send the last change again and read everything."""
        sent = self._shared.sent
        with closing(open_store(self._url)) as store:
            change = change_at(sent, _event_at(store, sent - 1))
            store.commit(change, expected_version=_version_before(sent))
            events = store.events()
            versions = list(store.versions())
            faults = (*verify_chain(events), *verify_library(store, events))
        if len(events) != sent or versions != list(range(1, _version_before(sent + 1) + 1)):
            raise KilledWriterError(f"{sent} sent: {len(events)} events, {len(versions)} versions")
        if faults:
            raise KilledWriterError("; ".join(fault.message for fault in faults))
        return sent


def _settled(store: Store, before: int) -> list[LibraryEvent]:
    """The events behind a place, when the versions tell the same.

    A server may finish for a client that is dead: what is read after that is newer than what was
    read before it.
    """
    while True:
        events, versions = list(store.events(after=before)), list(store.versions())
        if len(store.events(after=before)) == len(events):
            break
    told = [event.library_version for event in events if event.kind == "written"]
    if told != versions[_version_before(before + 1) :]:
        raise KilledWriterError(f"events tell of versions {told}, the store has {versions[-4:]}")
    return events


def _check_newest(store: Store) -> None:
    """The newest snapshot is one change whole."""
    library = store.load()
    texts = {tool.definition.description.summary.partition(" x")[0] for tool in library}
    wanted = {f"change {2 * library.version - 1}"} if library.version else set[str]()
    if texts != wanted or len(library) != (TOOLS if library.version else 0):
        raise KilledWriterError(f"{library} holds {len(library)} tools that say {sorted(texts)}")


def main(arguments: Sequence[str]) -> None:
    """Kill writers as the arguments say, and print what that brought."""
    url, kills, seed = arguments
    report = _Killer(url, int(seed)).run(int(kills))
    sys.stdout.write(json.dumps(asdict(report)))


if __name__ == "__main__":
    main(sys.argv[1:])
