"""A program that has programs killed while they spill episodes, and looks at what they leave.

``python kill_spilling_programs.py FOLDER KILLS SEED`` prints JSON. Not a test module: a test runs
it in a process of its own, because it forks. The store fails every other time, so that files come
and go. What the sessions hold in the end must be all that was appended, without a gap.
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
from agentkit.errors import StoreUnavailableError
from agentkit.library import EpisodeFilter, spilling
from agentkit.library.spilling import SpillingEpisodes
from agentkit.library.sqlite import SQLiteStore

LONGEST_LIFE = 0.08
"""Seconds from the first append on; a batch takes a millisecond."""

SESSIONS = ("even", "odd")


class FailingStore(SQLiteStore):
    """Fails two times, once before and once after it wrote, and then works."""

    asked = 0

    def append_many(self, episodes):
        """Keep them, or fail."""
        self.asked += 1
        if self.asked % 3 != 1:
            super().append_many(episodes)
        if self.asked % 3:
            raise StoreUnavailableError("the connection was lost")


def write(folder: Path, shared: mmap.mmap, number: int) -> None:
    """Append for ever from ``number`` on."""
    episodes = SpillingEpisodes(FailingStore(folder / "s.db"), folder=folder / "spill")
    draw = random.Random(number)
    shared[:] = struct.pack("qq", number, 0)
    while True:
        session = SESSIONS[number % 2]
        text = "x" * draw.choice((10, 6_000))  # more than one page, so that a write can tear
        episodes.append(Episode(episode_id=f"{number:09}", request=text, session_id=session))
        number += 1
        shared[:] = struct.pack("qq", number, 0)


def kill_one(folder: Path, number: int, life: float) -> int:
    """Start a program, kill it after ``life`` seconds; how many episodes were appended."""
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
        raise RuntimeError(f"the program ended by itself: {status}")
    return struct.unpack("qq", shared[:])[0]


def look(folder: Path, before: int, appended: int) -> int:
    """Take in what was spilled and check what came since ``before``; the next episode's number."""
    with SpillingEpisodes(SQLiteStore(folder / "s.db"), folder=folder / "spill") as episodes:
        while episodes.in_files or any((folder / "spill").glob("*.jsonl")):
            time.sleep(0.001)
    with closing(SQLiteStore(folder / "s.db")) as store:
        found = (int(one.episode_id) for one in store.select(EpisodeFilter()))
        new = sorted(takewhile(lambda number: number >= before - 1, found))
        count = store.volume().count
        for session in SESSIONS:
            check_order(store, session, count=len(new))
    if new != list(range(max(before - 1, 0), count)) or count < appended:
        raise RuntimeError(f"{before} were kept, then {appended} appended, now {count}: {new}")
    return count


def check_order(store: SQLiteStore, session: str, *, count: int) -> None:
    """The newest episodes of a session came one after the other, without a gap."""
    newest = store.select(EpisodeFilter(session_id=session, limit=count // 2))
    numbers = [int(one.episode_id) for one in newest]
    if any(younger - older != 2 for younger, older in pairwise(numbers)):
        raise RuntimeError(f"session {session} is not whole or not in order: {numbers}")


def main(folder: str, kills: str, seed: str) -> None:
    """Kill programs as often as asked for."""
    spilling._FIRST_PAUSE_SECONDS = 0.001
    logging.disable(logging.CRITICAL)
    draw, kept, appended, spills = random.Random(int(seed)), 0, 0, 0
    for _ in range(int(kills)):
        appended = max(appended, kill_one(Path(folder), kept, draw.random() * LONGEST_LIFE))
        spills += len(list((Path(folder) / "spill").glob("*.jsonl")))
        kept = look(Path(folder), kept, appended)
    found = {"killed": int(kills), "kept": kept, "appended": appended, "spilled_files": spills}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
