"""What stores cost: ``python tests/benchmarks/stores/commits.py sqlite dir postgres redis``.

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
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from places import MakeEmpty, empties

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange
from agentkit.tools.definition import Description

sys.path.append(str(Path(__file__).parents[2]))  # for tests/support

from support.store_race import race_faults, run_race

COLD_LOAD = """
import json, sys, time
from agentkit import open_store
began = time.perf_counter()
store = open_store(sys.argv[1])
opened, busy = time.perf_counter(), time.process_time()
library = store.load()
print(json.dumps([opened - began, time.perf_counter() - opened, time.process_time() - busy]))
assert len(library) == int(sys.argv[2])
store.close()
"""


@dataclass(kw_only=True)
class Figures:
    """Of one store; times in milliseconds, the median of all rounds.

    Attributes:
        store: Its kind, or the scheme of its URL.
        one_writer: Commits a second by one process.
        four_writers: Commits a second by four processes together.
        exact: Whether nothing got lost between the four.
        open_ms: Until a new process has opened the store.
        load_ms: Until it has loaded the large library.
        load_cpu_ms: Of its own processor in that time.
        catch_up_ms: Until a replica that holds the large library has a commit of one tool.
    """

    store: str
    one_writer: float
    four_writers: float | None = None
    exact: bool | None = None
    open_ms: float | None = None
    load_ms: float = 0
    load_cpu_ms: float = 0
    catch_up_ms: float | None = None


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


def measure(name: str, empty: MakeEmpty, *, proposals: int, tools: int, rounds: int) -> Figures:
    """All figures of one store."""
    with empty() as url:
        alone = run_race(url, writers=1, each=proposals)
    with empty() as url:
        four = run_race(url, writers=4, each=proposals)
        with closing(open_store(url)) as store:
            exact = race_faults(store, four.proposals) == ()
    with empty() as url:
        with closing(open_store(url)) as store:
            change = LibraryChange(proposal_id="all", upserts=tuple(map(tool, range(tools))))
            store.commit(change, expected_version=0)
        command = [sys.executable, "-c", COLD_LOAD, url, str(tools)]
        times = [json.loads(subprocess.check_output(command)) for _ in range(rounds)]
        catch_up = median(catch_ups(url, rounds=4 * rounds))
    opened, loaded, busy = (1000 * median(each) for each in zip(*times, strict=True))
    return Figures(
        store=name,
        one_writer=alone.made / alone.seconds,
        four_writers=four.made / four.seconds,
        exact=exact,
        open_ms=opened,
        load_ms=loaded,
        load_cpu_ms=busy,
        catch_up_ms=catch_up,
    )


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


def floor(folder: Path, *, proposals: int, tools: int, rounds: int) -> Figures:
    """The same rows by the driver alone: no rules, no chain, no objects."""
    with closing(sqlite3.connect(folder / "floor.db", isolation_level=None)) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("CREATE TABLE versions (version INTEGER PRIMARY KEY, id TEXT UNIQUE, t TEXT)")
        raw.execute("CREATE TABLE bodies (digest TEXT PRIMARY KEY, body TEXT)")
        raw.execute("CREATE TABLE revisions (name TEXT, version INT, digest TEXT, origin TEXT,"
                    " PRIMARY KEY (name, version))")  # fmt: skip
        raw.execute("CREATE TABLE events (sequence INTEGER PRIMARY KEY, body TEXT)")
        began = time.perf_counter()
        for number in range(1, proposals + 1):
            _commit_bare(raw, number)
        seconds = time.perf_counter() - began
        record = tool(0).to_json()
        rows = [(str(n), json.dumps({**record, "name": f"tool_{n}"})) for n in range(tools)]
        raw.execute("BEGIN")
        raw.executemany("INSERT INTO bodies VALUES (?, ?)", rows)
        raw.execute("COMMIT")
        times = [_load_bare(raw) for _ in range(rounds)]
    loaded, busy = (1000 * median(each) for each in zip(*times, strict=True))
    return Figures(
        store="bare sqlite3", one_writer=proposals / seconds, load_ms=loaded, load_cpu_ms=busy
    )


def _commit_bare(raw: sqlite3.Connection, number: int) -> None:
    definition = ToolDefinition(
        name=f"tool-{number % 10}", description=Description(summary=f"proposal-{number}")
    )
    body = json.dumps(definition.to_json())
    raw.execute("BEGIN IMMEDIATE")
    raw.execute("SELECT coalesce(max(version), 0) FROM versions").fetchall()
    raw.execute("INSERT INTO versions VALUES (?, ?, ?)", (number, f"proposal-{number}", "now"))
    raw.execute("INSERT INTO bodies VALUES (?, ?)", (f"digest {number}", body))
    row = (definition.name, number, f"digest {number}", "{}")
    raw.execute("INSERT INTO revisions VALUES (?, ?, ?, ?)", row)
    raw.execute("INSERT INTO events VALUES (?, ?)", (number, "x" * 500))
    raw.execute("COMMIT")


def _load_bare(raw: sqlite3.Connection) -> tuple[float, float]:
    began, busy = time.perf_counter(), time.process_time()
    rows = raw.execute("SELECT body FROM bodies WHERE length(digest) < 7").fetchall()
    kept = [json.loads(body) for (body,) in rows]
    taken = time.perf_counter() - began, time.process_time() - busy
    assert kept
    return taken


def show(all_figures: list[Figures]) -> None:
    """A table."""
    names = list(asdict(all_figures[0]))
    print(" ".join(f"{name:>13}" for name in names))
    for figures in all_figures:
        print(" ".join(f"{_shown(value):>13}" for value in asdict(figures).values()))


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("stores", nargs="*", default=["sqlite"], metavar="STORE")
    parser.add_argument("--proposals", type=int, default=500, help="of each writer")
    parser.add_argument("--tools", type=int, default=10_000, help="of the large library")
    parser.add_argument("--rounds", type=int, default=5, help="of loading")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    size = {"proposals": given.proposals, "tools": given.tools, "rounds": given.rounds}
    found: list[Figures] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found.append(floor(folder, **size))
        for place in given.stores:
            name = place.partition(":")[0]
            found.append(measure(name, empties(place, stack), **size))
    show(found)
    if given.json:
        machine = (
            f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        )
        record = {"machine": machine, "sqlite": sqlite3.sqlite_version, **size}
        given.json.write_text(
            json.dumps({**record, "stores": [asdict(one) for one in found]}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
