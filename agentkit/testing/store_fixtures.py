"""What the conformance suites stand on: how they get a store, and how they run things at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeAlias, TypeVar

import pytest

from agentkit.library.opening import open_store
from agentkit.library.store import Store

Result = TypeVar("Result")
OpenAgain: TypeAlias = Callable[[], Store]


class StoreFixtures:
    """The fixtures of the suites. A plugin's test class overrides one of them.

    * ``store_url``: the URL of a store that is empty. The usual choice; every test then runs.
    * ``open_store_again``: a callable that opens the one empty store, each time it is called.
      For a store that no URL names; tests with several processes are skipped.
    * ``store``: the empty store itself. For one that lives in this process alone; tests that
      open it again are skipped too.
    """

    @pytest.fixture
    def store_url(self) -> str:
        """URL of an empty store, for this process and others."""
        pytest.skip("no URL names this store, so nobody else can open it")

    @pytest.fixture
    def open_store_again(self, store_url: str) -> Iterator[OpenAgain]:
        """Opens the store of this test, and closes it when the test is over."""
        opened: list[Store] = []

        def open_one() -> Store:
            opened.append(open_store(store_url))
            return opened[-1]

        yield open_one
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, open_store_again: OpenAgain) -> Iterator[Store]:
        """An empty store."""
        store = open_store_again()
        yield store
        store.close()


def fault_runs(few: int, *, most: int | None = None) -> int:
    """How often a test repeats a fault: ``few``, unless ``AGENTKIT_FAULT_RUNS`` says how often.

    ``most`` bounds what the environment asks for, where one fault takes seconds: a server restarts.
    """
    asked = int(os.environ.get("AGENTKIT_FAULT_RUNS", "") or few)
    return asked if most is None else min(asked, most)


def fault_seconds(few: float, many: float) -> float:
    """How long a test keeps a fault up: ``few``; ``many`` where ``AGENTKIT_FAULT_RUNS`` is set."""
    return many if os.environ.get("AGENTKIT_FAULT_RUNS") else few


def together(works: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
    """Start all of ``works`` at the same moment, each in its thread; what each gave or raised."""
    barrier = Barrier(len(works))

    def run(work: Callable[[], Result]) -> Result | Exception:
        barrier.wait()
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - the caller looks at what was raised
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def start_writer(url: str, action: str, name: str, count: int) -> subprocess.Popen[str]:
    """Start ``agentkit.testing.store_writer`` in a process of its own."""
    program = [sys.executable, "-m", "agentkit.testing.store_writer"]
    return subprocess.Popen(  # noqa: S603 - our own module
        [*program, url, action, name, str(count)], stdout=subprocess.PIPE, text=True
    )
