"""A program that has writers of episodes killed at any moment, and looks at what they leave.

``python kill_episode_writers.py FOLDER KILLS SEED`` prints JSON. Not a test module: a test runs it
in a process of its own, because it forks. Each writer has a buffer so small that it spills all the
time. What its sessions hold in the end must be the beginning of what it appended, without a gap.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import random
import signal
import struct
import sys
import time
from contextlib import closing
from itertools import pairwise, takewhile
from pathlib import Path

from agentkit import Episode
from agentkit.library import EpisodeFilter
from agentkit.library.episode_writer import EpisodeWriter, WriterSettings
from agentkit.library.sqlite import SQLiteStore

LONGEST_LIFE = 0.08
"""Seconds from the first append on; a batch takes a millisecond."""

SESSIONS = ("even", "odd")

SMALL = WriterSettings(linger_seconds=0.001, batch_count=3, max_count=6, wait_seconds=0.0005)


def write(folder: Path, shared: mmap.mmap, number: int) -> None:
    """Append for ever from ``number`` on, and flush now and then."""
    writer = EpisodeWriter(SQLiteStore(folder / "s.db"), spill=folder / "spill", settings=SMALL)
    draw = random.Random(number)
    shared[:] = struct.pack("qq", number, 0)
    while True:
        session = SESSIONS[number % 2]
        text = "x" * draw.choice((10, 6_000))  # more than one page, so that a write can tear
        writer.append(Episode(episode_id=f"{number:09}", request=text, session_id=session))
        number += 1
        if draw.random() < 0.05:
            writer.flush()
            shared[:] = struct.pack("qq", number, 0)


def kill_one(folder: Path, number: int, life: float) -> int:
    """Start a writer, kill it after ``life`` seconds; how many episodes were flushed."""
    shared = mmap.mmap(-1, 16)
    shared[:] = struct.pack("qq", -1, 0)
    child = os.fork()
    if child == 0:
        try:
            write(folder, shared, number)
        finally:
            os._exit(1)
    while struct.unpack("qq", shared[:])[0] < 0 and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.0005)
    time.sleep(life)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise RuntimeError(f"the writer ended by itself: {status}")
    return struct.unpack("qq", shared[:])[0]


def look(folder: Path, before: int, flushed: int) -> int:
    """Take in what was spilled and check what came since ``before``; the next episode's number."""
    with EpisodeWriter(SQLiteStore(folder / "s.db"), spill=folder / "spill") as writer:
        writer.flush()
    with closing(SQLiteStore(folder / "s.db")) as store:
        found = (int(one.episode_id) for one in store.select(EpisodeFilter()))
        new = sorted(takewhile(lambda number: number >= before - 1, found))
        count = store.volume().count
        for session in SESSIONS:
            check_order(store, session, count=len(new))
    if new != list(range(max(before - 1, 0), count)) or count < flushed:
        raise RuntimeError(f"{before} were kept, then {flushed} flushed, now {count}: {new}")
    left = [path.name for path in (folder / "spill").glob("*.jsonl")]
    if left:
        raise RuntimeError(f"not taken in: {left}")
    return count


def check_order(store: SQLiteStore, session: str, *, count: int) -> None:
    """The newest episodes of a session came one after the other, without a gap."""
    newest = store.select(EpisodeFilter(session_id=session, limit=count // 2))
    numbers = [int(one.episode_id) for one in newest]
    if any(younger - older != 2 for younger, older in pairwise(numbers)):
        raise RuntimeError(f"session {session} is not whole or not in order: {numbers}")


def main(folder: str, kills: str, seed: str) -> None:
    """Kill writers as often as asked for."""
    logging.disable(logging.CRITICAL)
    draw, kept, flushed, spills = random.Random(int(seed)), 0, 0, 0
    for _ in range(int(kills)):
        flushed = max(flushed, kill_one(Path(folder), kept, draw.random() * LONGEST_LIFE))
        spills += len(list((Path(folder) / "spill").glob("*.jsonl")))
        kept = look(Path(folder), kept, flushed)
    found = {"killed": int(kills), "kept": kept, "flushed": flushed, "spilled_files": spills}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
