"""What stores cost: commits, loading a large library, catching up with a commit (docs/stores.md).

    python tests/benchmarks/stores/commits.py sqlite dir postgres redis [--proposals N] [--tools N]

A store is named by its kind, and a server is started for it where it needs one, or by the URL of a
server that runs already (``postgresql://...``, ``redis://...``); it gets a schema or a prefix of its
own, which goes afterwards. Beside them runs the floor: a bare loop over the driver of SQLite that
writes the same rows with the same flush to the disk, and reads the same texts.

A commit here is what a writer does for one: load the newest snapshot, read the new events, commit a
tool with an event, and again where another writer was faster.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import arguments, report
from support.store_race import race_faults, run_race

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange

MakeEmpty = Callable[[], AbstractContextManager[str]]

COLD_LOAD = """
import json, sys, time
from agentkit import open_store
began = time.perf_counter()
store = open_store(sys.argv[1])
opened = time.perf_counter()
library = store.load()
print(json.dumps([opened - began, time.perf_counter() - opened]))
assert len(library) == int(sys.argv[2])
store.close()
"""


def empties(place: str, stack: ExitStack) -> MakeEmpty:
    """How to get empty stores of a kind, or on a server that runs."""
    match place.partition(":")[0]:
        case "sqlite":
            return lambda: in_folder("sqlite:///{}/store.db")
        case "dir":
            return lambda: in_folder("dir:{}")
        case "postgres" | "postgresql":
            from agentkit_postgres import testing as postgres

            server = place if ":" in place else stack.enter_context(postgres.PostgresServer()).url
            return lambda: postgres.empty_store_url(server)
        case "redis" | "rediss":
            from agentkit_redis import testing as redis

            server = place if ":" in place else stack.enter_context(redis.RedisServer()).url
            return lambda: redis.empty_library(server)
        case _:
            sys.exit(f"{place!r} is no store to measure: sqlite, dir, postgres, redis or a URL")


@contextmanager
def in_folder(url: str) -> Iterator[str]:
    """A store in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield url.format(folder)


def tool(number: int, words: str = "and says what came of it") -> ToolDefinition:
    """One of many tools, with three parameters."""
    parameters = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city."},
            "days": {"type": "integer", "minimum": 1, "description": "How many days."},
            "unit": {"type": "string", "enum": ["c", "f"], "description": "Of the result."},
        },
        "required": ["city"],
    }
    text = f"Looks up thing number {number} for a city and some days, {words}."
    return ToolDefinition.from_schema(f"tool_{number}", text, parameters)


def measured(name: str, empty: MakeEmpty, options: argparse.Namespace) -> dict[str, Any]:
    """All figures of one store."""
    with empty() as url:
        alone = run_race(url, writers=1, each=options.proposals)
    with empty() as url:
        four = run_race(url, writers=4, each=options.proposals)
        with closing(open_store(url)) as store:
            exact = race_faults(store, four.proposals) == ()
    with empty() as url:
        with closing(open_store(url)) as store:
            everything = tuple(map(tool, range(options.tools)))
            change = LibraryChange(proposal_id="all", upserts=everything)
            store.commit(change, expected_version=0)
        command = [sys.executable, "-c", COLD_LOAD, url, str(options.tools)]
        times = [json.loads(subprocess.check_output(command)) for _ in range(options.rounds)]
        catch_up = median(catch_ups(url, rounds=4 * options.rounds))
    opened, loaded = (1000 * median(each) for each in zip(*times, strict=True))
    return {
        "store": name,
        "commits/s, one writer": alone.made / alone.seconds,
        "four writers": four.made / four.seconds,
        "each there once": exact,
        "open ms": opened,
        f"load of {options.tools:,} tools, ms": loaded,
        "catch up with one commit, ms": catch_up,
    }


def catch_ups(url: str, *, rounds: int) -> Iterator[float]:
    """How long a replica takes each time after a commit elsewhere, in milliseconds."""
    with closing(open_store(url)) as store, closing(open_store(url)) as replica:
        replica.load()
        for number in range(rounds):
            version = store.load().version
            change = LibraryChange(proposal_id=f"c{number}", upserts=(tool(number, "again"),))
            store.commit(change, expected_version=version)
            began = time.perf_counter()
            caught_up = replica.load()
            yield 1000 * (time.perf_counter() - began)
            assert caught_up.version == version + 1


def floor(options: argparse.Namespace) -> dict[str, Any]:
    """The same rows by the driver alone: no rules, no chain, no objects."""
    body = json.dumps(tool(0).to_json())
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(sqlite3.connect(Path(folder) / "floor.db", isolation_level=None)) as raw,
    ):
        raw.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            "CREATE TABLE versions (version INTEGER PRIMARY KEY, id TEXT UNIQUE, t TEXT);"
            "CREATE TABLE bodies (digest TEXT PRIMARY KEY, body TEXT);"
            "CREATE TABLE revisions (name TEXT, version INT, digest TEXT, PRIMARY KEY (name, version));"
            "CREATE TABLE events (sequence INTEGER PRIMARY KEY, body TEXT);"
        )
        began = time.perf_counter()
        for number in range(1, options.proposals + 1):
            raw.execute("BEGIN IMMEDIATE")
            raw.execute("SELECT coalesce(max(version), 0) FROM versions").fetchall()
            raw.execute("INSERT INTO versions VALUES (?, ?, ?)", (number, f"p-{number}", "now"))
            raw.execute("INSERT INTO bodies VALUES (?, ?)", (f"digest {number}", "x" * 200))
            row = (f"tool-{number % 10}", number, f"digest {number}")
            raw.execute("INSERT INTO revisions VALUES (?, ?, ?)", row)
            raw.execute("INSERT INTO events VALUES (?, ?)", (number, "x" * 500))
            raw.execute("COMMIT")
        seconds = time.perf_counter() - began
        raw.execute("BEGIN")
        rows = ((str(n), body) for n in range(options.tools))
        raw.executemany("INSERT INTO bodies VALUES (?, ?)", rows)
        raw.execute("COMMIT")
        began = time.perf_counter()
        found = raw.execute("SELECT body FROM bodies WHERE length(digest) < 7").fetchall()
        kept = [json.loads(text) for (text,) in found]
        loaded = 1000 * (time.perf_counter() - began)
        assert len(kept) == options.tools
    return {
        "store": "bare sqlite3, no rules",
        "commits/s, one writer": options.proposals / seconds,
        f"load of {options.tools:,} tools, ms": loaded,
    }


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("stores", nargs="*", default=["sqlite"], metavar="STORE")
    parser.add_argument("--proposals", type=int, default=500, help="of each writer")
    parser.add_argument("--tools", type=int, default=10_000, help="of the large library")
    asked = parser.parse_args()
    with ExitStack() as servers:
        measured_stores = [
            measured(place.partition(":")[0], empties(place, servers), asked)
            for place in asked.stores
        ]
    report([floor(asked), *measured_stores], asked)
