"""A program that has several writers of one folder killed again and again, and looks at the rest.

``python kill_several_writers.py FOLDER RUNS SEED`` prints JSON. Not a test module: a test runs it in
a process of its own, because it forks. Each writer puts, takes out and tells of tools at random, and
notes every change that the store has taken.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from contextlib import closing
from itertools import count
from pathlib import Path

from agentkit import ToolDefinition
from agentkit.errors import StaleVersionError
from agentkit.library import Library, LibraryChange
from agentkit.library.chain_check import verify_chain
from agentkit.library.changes import now
from agentkit.library.directory import DirectoryStore
from agentkit.library.directory.texts import FORMS
from agentkit.library.events import Author, EventDraft, chained
from agentkit.tools.definition import Description

NAMES = ["ping", "Ping", "a/b", "天気", "x" * 200]
LONGEST_LIFE = 0.15
"""Seconds; a commit takes a few milliseconds."""


def change(
    draw: random.Random, library: Library, store: DirectoryStore, name: str
) -> LibraryChange:
    """Any change that the newest library can take."""
    kind = draw.choice(["put", "put", "put", "remove", "tell"])
    held = [one for one in NAMES if one in library]
    removals = tuple(draw.sample(held, 1)) if kind == "remove" and held else ()
    put = draw.sample([one for one in NAMES if one not in removals], 2) if kind == "put" else []
    tools = tuple(ToolDefinition(name=one, description=Description(summary=name)) for one in put)
    last = next(reversed(store.events()), None)
    author = Author(kind="program", name="writer")
    events = chained(last, [EventDraft(kind="written", author=author, reason=name)], at=now())
    is_told = kind != "put" or draw.random() < 0.5
    return LibraryChange(
        proposal_id=name, upserts=tools, removals=removals, events=events if is_told else ()
    )


def write(folder: Path, notes: int, name: str, seed: int) -> None:
    """Commit while the parent is there; each change that was taken is a line in the notes."""
    draw, parent, numbers = random.Random(seed), os.getppid(), count()
    with closing(DirectoryStore(folder)) as store:
        while os.getppid() == parent:  # a test that is broken off leaves no writer behind
            number = next(numbers)
            while True:
                library = store.load()
                made = change(draw, library, store, f"{name}-{number}")
                try:
                    store.commit(made, expected_version=library.version)
                except StaleVersionError:
                    continue
                break
            os.write(notes, f"{name}-{number} {int(made.makes_version)}\n".encode())


def start(folder: Path, notes: int, name: str, seed: int) -> int:
    """Start a writer in a fork."""
    child = os.fork()
    if child == 0:
        try:
            write(folder, notes, name, seed)
        except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
            traceback.print_exc()
        os._exit(1)
    return child


def look(folder: Path, taken: dict[str, bool], *, seen: int) -> int:
    """Check that all is whole and nothing that was taken is lost; the newest version.

    Versions up to ``seen`` were loaded before, and no file of the history ever changes.
    """
    with closing(DirectoryStore(folder)) as store:
        if faults := list(store.check()) + list(verify_chain(store.events())):
            raise RuntimeError(f"damage: {faults[:3]}")
        applied = list(store.changes())
        ids = [one.change.proposal_id for one in applied]
        told = {event.reason for event in store.events()}
        lost = [one for one, makes in taken.items() if one not in (ids if makes else told)]
        if lost or len(set(ids)) < len(ids):
            raise RuntimeError(f"lost {lost}, twice {len(ids) - len(set(ids))}")
        tools: dict[str, ToolDefinition] = {}
        for one in applied:
            for name in one.change.removals:
                del tools[name]
            tools |= {tool.name: tool for tool in one.change.upserts}
            if one.version > seen and list(store.load(one.version).definitions) != list(
                tools.values()
            ):
                raise RuntimeError(f"version {one.version} is not what its changes make")
        files = {path.read_bytes() for path in (folder / "tools").iterdir()}
        if files != {FORMS["yaml"].text_of(tool) for tool in tools.values()}:
            raise RuntimeError("the files of tools do not show the newest version")
        return store.load().version


def main(folder: str, runs: str, seed: str) -> None:
    """Kill all writers, as often as asked for."""
    draw = random.Random(int(seed))
    path, killed, version = Path(folder) / "library", 0, 0
    note = Path(folder) / "notes"
    notes = os.open(note, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    for run in range(int(runs)):
        before = note.stat().st_size
        writers = [start(path, notes, f"{run}-{n}", draw.randrange(10**9)) for n in range(3)]
        deadline = time.monotonic() + 60
        while note.stat().st_size == before and time.monotonic() < deadline:
            time.sleep(0.001)
        for writer in writers:
            time.sleep(draw.random() * LONGEST_LIFE)
            os.kill(writer, signal.SIGKILL)
            _, status = os.waitpid(writer, 0)
            if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                raise RuntimeError(f"a writer ended by itself: {status}")
            killed += 1
        lines = (line.split() for line in note.read_text().splitlines())
        version = look(path, {name: makes == "1" for name, makes in lines}, seen=version)
    taken = len(note.read_text().splitlines())
    sys.stdout.write(json.dumps({"killed": killed, "taken": taken, "version": version}))


if __name__ == "__main__":
    main(*sys.argv[1:])
