"""Fixtures of the conformance suites: getting a store, and running things concurrently."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeAlias, TypeVar

import pytest

from agentkit.library.opening import open_store
from agentkit.library.store import LibraryChange, Store
from agentkit.tools.definition import Description, ToolDefinition

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
    """Start ``agentkit.testing.conformance.writer`` in a process of its own."""
    program = [sys.executable, "-m", "agentkit.testing.conformance.writer"]
    return subprocess.Popen(  # noqa: S603 - our own module
        [*program, url, action, name, str(count)], stdout=subprocess.PIPE, text=True
    )


def a_tool(name: str, summary: str = "") -> ToolDefinition:
    """A definition that says nothing but this."""
    return ToolDefinition(name=name, description=Description(summary=summary))


def put(proposal_id: str, *tools: ToolDefinition, remove: tuple[str, ...] = ()) -> LibraryChange:
    """A change that writes tools and takes others out."""
    return LibraryChange(proposal_id=proposal_id, upserts=tools, removals=remove)
