"""How soon a replica in another process sees a commit, and what its loop costs while idle.

``python tests/benchmarks/stores/replica.py sqlite dir postgres redis http`` takes stores by their
kind, and starts a server where it needs one (``http`` is a SQLite file behind ``agentkit serve
--library``), or by the URL of a server of PostgreSQL or Redis that runs already.

The writer commits at random moments. The replica notes when it handed on the version, by the
monotonic clock, which all processes of one machine share. So a time is from the end of the commit
to the moment from which runs begin on the new version, the search index of the agents included.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from places import empties

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange, Store
from agentkit.tools.definition import Description

FOLLOWER = """
import json, sys, time
from agentkit.library import Replica
url, refresh, hints = sys.argv[1], float(sys.argv[2]), sys.argv[3] == "hints"
def tell(library):
    print(library.version, time.monotonic_ns(), flush=True)
replica = Replica(url, refresh_seconds=refresh, hints=hints)
time.sleep(max(1.0, refresh))  # by now it listens
replica.follow(tell)
for seconds in sys.stdin:
    cpu, wall, looks = time.process_time(), time.monotonic(), replica.status.looks
    time.sleep(float(seconds))
    spent = (time.process_time() - cpu) / (time.monotonic() - wall)
    print("idle", json.dumps({"cpu": spent, "looks": replica.status.looks - looks,
                              "listening": replica.status.is_listening}), flush=True)
replica.close()
"""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of one store and one way to follow it; times in milliseconds.

    Attributes:
        store: The scheme of its URL.
        way: ``hints`` or ``polling``.
        listening: Whether the replica heard the store; False for one that gives no hints.
        commits: How many were timed.
        median_ms: From the end of a commit until runs begin on it.
        p95_ms: The same, of which 95 of 100 were sooner.
        worst_ms: The longest.
        idle_cpu_percent: Of one core, while nothing is committed.
        idle_looks: Looks at the store a second meanwhile.
    """

    store: str
    way: str
    listening: bool
    commits: int
    median_ms: float
    p95_ms: float
    worst_ms: float
    idle_cpu_percent: float
    idle_looks: float


def main() -> None:
    """Measure each store in both ways, print a table, and write JSON if asked."""
    options = _options()
    found: list[Figures] = []
    for place in options.stores:
        for way in ("hints", "polling"):
            with ExitStack() as stack:
                write, read = _empty(place, stack)
                found.append(measured(write, read, way=way, options=options))
    _print(found)
    if options.json is not None:
        machine = {"platform": platform.platform(), "python": platform.python_version()}
        record = {"machine": machine, "figures": [asdict(one) for one in found]}
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")


def measured(write: str, read: str, *, way: str, options: argparse.Namespace) -> Figures:
    """Follow a store in a process of its own, commit to it, and then leave it alone."""
    with closing(open_store(write)) as store:
        _fill(store, options.tools)
        with _follower(read, way, options.refresh) as follower:
            assert follower.stdout is not None
            assert follower.stdin is not None
            follower.stdout.readline()  # the version that is there
            ended = _commits(store, options.commits, longest_pause=options.refresh / 2)
            seen = _seen(follower.stdout, last=max(ended))
            print(options.idle, file=follower.stdin, flush=True)
            idle = json.loads(follower.stdout.readline().removeprefix("idle "))
    delays = [(_first(seen, version) - at) / 1e6 for version, at in ended.items()]
    return Figures(
        store=read.partition(":")[0],
        way=way,
        listening=idle["listening"],
        commits=len(delays),
        median_ms=median(delays),
        p95_ms=quantiles(delays, n=20)[-1],
        worst_ms=max(delays),
        idle_cpu_percent=100 * idle["cpu"],
        idle_looks=idle["looks"] / options.idle,
    )


def _fill(store: Store, count: int) -> None:
    """See that the library has so many tools."""
    library = store.load()
    names = [name for at in range(count) if (name := f"bench_tool_{at:05}") not in library]
    text = "Look up a record of the shop by its number, and tell what is known about it."
    tools = tuple(ToolDefinition(name=n, description=Description(summary=text)) for n in names)
    if tools:
        change = LibraryChange(proposal_id=f"fill-{uuid.uuid4().hex}", upserts=tools)
        store.commit(change, expected_version=library.version)


def _commits(store: Store, count: int, *, longest_pause: float) -> dict[int, int]:
    """When each version was committed."""
    ended = {}
    version = store.load().version
    for at in range(count):
        time.sleep(random.uniform(0.02, max(0.03, longest_pause)))
        description = Description(summary=f"Commit {at}.")
        tool = ToolDefinition(name="bench_changing", description=description)
        change = LibraryChange(proposal_id=f"bench-{uuid.uuid4().hex}", upserts=(tool,))
        version = store.commit(change, expected_version=version)
        ended[version] = time.monotonic_ns()
    return ended


@contextmanager
def _follower(url: str, way: str, refresh: float) -> Iterator[subprocess.Popen[str]]:
    program = [sys.executable, "-c", FOLLOWER, url, str(refresh), way]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, text=True, **pipes) as follower:  # type: ignore[call-overload]
        try:
            yield follower
        finally:
            follower.stdin.close()


def _seen(lines: Iterator[str], *, last: int) -> list[tuple[int, int]]:
    """Versions and when they were handed on, up to the last one."""
    seen: list[tuple[int, int]] = []
    while not seen or seen[-1][0] < last:
        version, at = next(lines).split()
        seen.append((int(version), int(at)))
    return seen


def _first(seen: Sequence[tuple[int, int]], version: int) -> int:
    """When a version, or a later one, was there."""
    return next(at for found, at in seen if found >= version)


def _empty(place: str, stack: ExitStack) -> tuple[str, str]:
    """Where to write, and where to read."""
    if place != "http":
        url = stack.enter_context(empties(place, stack)())
        return url, url
    url = stack.enter_context(empties("sqlite", stack)())
    open_store(url).close()  # the command serves a store that is there
    program = [Path(sys.executable).with_name("agentkit"), "serve", "--library", "--store", url]
    server = subprocess.Popen([*program, "--port", "0"], stderr=subprocess.PIPE, text=True)
    stack.callback(server.wait)
    stack.callback(server.terminate)
    assert server.stderr is not None
    stack.callback(server.stderr.close)
    found = next(filter(None, (re.search(r"http://[\w.:]+", line) for line in server.stderr)))
    cache = stack.enter_context(tempfile.TemporaryDirectory())
    return url, f"{found.group()}?cache={cache}"


def _print(found: Sequence[Figures]) -> None:
    print(
        "| store | way | listening | commits | median ms | p95 ms | worst ms | idle CPU | looks/s |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    for one in found:
        print(
            f"| {one.store} | {one.way} | {'yes' if one.listening else 'no'} | {one.commits} "
            f"| {one.median_ms:.1f} | {one.p95_ms:.1f} | {one.worst_ms:.1f} "
            f"| {one.idle_cpu_percent:.2f} % | {one.idle_looks:.1f} |"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="*", default=["sqlite"], metavar="STORE")
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--refresh", type=float, default=1.0, help="seconds between two looks")
    parser.add_argument("--tools", type=int, default=100, help="tools in the library")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds of idling to measure")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
