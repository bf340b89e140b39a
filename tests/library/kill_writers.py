"""A program that has writers killed in the middle of commits, and looks at what they leave.

``python kill_writers.py FILE KILLS SEED`` prints JSON. Not a test module: a test runs it in a
process of its own, because it forks, which costs milliseconds where a new Python costs a second.
Each writer commits a tool with an event, then events alone, in turn, until it is killed at a moment
drawn at random. Memory that both processes see tells what the writer was doing when it died.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import struct
import sys
import time
from contextlib import closing
from pathlib import Path

from agentkit import ToolDefinition
from agentkit.library import LibraryChange, LibraryEvent
from agentkit.library.chain import EventDraft, chained
from agentkit.library.changes import now
from agentkit.library.events import Author
from agentkit.library.sqlite import SQLiteStore
from agentkit.tools.definition import Description

LONGEST_LIFE = 0.03
"""Seconds; a commit takes a few milliseconds."""

WRITER = Author(kind="program", name="writer")


class Shared:
    """Two numbers that a writer keeps up to date for whoever kills it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)

    def set(self, *, is_committing: int, answered: int) -> None:
        """Note whether a transaction is open, and how many changes the store has taken."""
        self._memory[:] = struct.pack("qq", is_committing, answered)

    def get(self) -> tuple[int, int]:
        """What was noted last."""
        return struct.unpack("qq", self._memory)


def write(path: Path, shared: Shared, last: LibraryEvent | None) -> None:
    """Commit for ever, behind the last event there is; every second change is of events alone."""
    answered = 0

    def trace(sql: str, _: object) -> None:
        if sql.startswith("BEGIN"):
            shared.set(is_committing=1, answered=answered)

    store = SQLiteStore(path, tracer=trace)
    while True:
        version = store.load().version
        change = change_behind(last, version)
        store.commit(change, expected_version=version)
        last, answered = change.events[-1], answered + 1
        shared.set(is_committing=0, answered=answered)


def change_behind(last: LibraryEvent | None, version: int) -> LibraryChange:
    """The change that comes next: a tool with an event, or an event alone."""
    place = last.sequence if last else 0
    tool = ToolDefinition(name="tool", description=Description(summary=f"change {place}"))
    makes_version = place % 2 == 0
    draft = EventDraft(
        kind="written" if makes_version else "assessed",
        author=WRITER,
        tool_name="tool",
        library_version=version + makes_version,
        digest_after=tool.digest if makes_version else "",
        facts={"padding": "x" * 5_000},  # more than one page, so that a write can tear
    )
    return LibraryChange(
        proposal_id=f"change-{place}",
        upserts=(tool,) if makes_version else (),
        events=chained(last, [draft], at=now()),
    )


def kill_one(path: Path, shared: Shared, last: LibraryEvent | None, life: float) -> tuple[int, int]:
    """Start a writer and kill it after ``life`` seconds from its first transaction on."""
    shared.set(is_committing=0, answered=0)
    child = os.fork()
    if child == 0:
        try:
            write(path, shared, last)
        finally:
            os._exit(1)
    while shared.get() == (0, 0) and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.0005)
    time.sleep(life)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise RuntimeError(f"the writer ended by itself: {status}")
    return shared.get()


def look(path: Path, last: LibraryEvent | None, answered: int) -> list[LibraryEvent]:
    """Check what a writer left behind the last event before it; the events that it left."""
    before = last.sequence if last else 0
    with closing(SQLiteStore(path)) as store:
        new = list(store.events(after=before))
        if not answered <= len(new) <= answered + 1:
            raise RuntimeError(f"{answered} changes were taken, {len(new)} are kept")
        told = [event.library_version for event in new if event.kind == "written"]
        newest = last.library_version if last else 0
        if told != [one for one in store.versions() if one > newest]:
            raise RuntimeError(f"the events tell of {told}, the versions are {store.versions()}")
    return new


def main(file: str, kills: str, seed: str) -> None:
    """Kill writers until as many died in mid-commit as asked for."""
    path, shared, draw = Path(file), Shared(), random.Random(int(seed))
    killed = in_commit = unanswered = 0
    last: LibraryEvent | None = None
    while in_commit < int(kills):
        is_committing, answered = kill_one(path, shared, last, draw.random() * LONGEST_LIFE)
        new = look(path, last, answered)
        killed, in_commit = killed + 1, in_commit + is_committing
        unanswered += len(new) - answered
        last = new[-1] if new else last
    kept = last.sequence if last else 0
    found = {"killed": killed, "in_commit": in_commit, "unanswered": unanswered, "events": kept}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
