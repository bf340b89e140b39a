"""Programs that commit to one store at the same time.

``run_race`` starts them. Each runs ``python -m support.store_race URL FIRST COUNT OF PATIENCE``: it
offers COUNT proposals of OF, from number FIRST around, and prints JSON; a store that can not be
reached is asked again for PATIENCE seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from agentkit.errors import StoreError
from agentkit.library.opening import open_store
from agentkit.testing.conformance.races import Racer

_TESTS = str(Path(__file__).parents[1])


def environment() -> dict[str, str]:
    """The variables with which a program finds ``support``."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([_TESTS, os.environ.get("PYTHONPATH", "")])}


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
        patience_seconds: How long they offer one again to a store that can not be reached.

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
