"""What the tests of replicas share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.unreliable_store import UnreliableStore

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange, Replica, Store
from agentkit.tools.definition import Description

SECONDS = 30.0
"""How long a test waits for what must happen; nothing is asserted about how long it took."""


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Waits until something holds."""

    def wait(holds: Callable[[], bool]) -> None:
        until = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < until, "it did not happen"
            time.sleep(0.002)

    return wait


@pytest.fixture
def put() -> Callable[..., int]:
    """Commits tools of one text on the newest version."""

    def commit(store: Store, *names: str, summary: str = "") -> int:
        version = max(store.versions(), default=0)
        description = Description(summary=summary)
        tools = tuple(ToolDefinition(name=name, description=description) for name in names)
        change = LibraryChange(proposal_id=f"p{version + 1}", upserts=tools)
        return store.commit(change, expected_version=version)

    return commit


@pytest.fixture
def kept() -> Iterator[Store]:
    """What the store really holds, whether it is away or not."""
    store = open_store("memory:")
    yield store
    store.close()


@pytest.fixture
def far(kept) -> UnreliableStore:
    """The same store, which may go away."""
    return UnreliableStore(kept)


@pytest.fixture
def replicate() -> Iterator[Callable[..., Replica]]:
    """Makes replicas that look every few milliseconds, and ends them."""
    made: list[Replica] = []

    def make(store: Store | str, **options: Any) -> Replica:
        made.append(Replica(store, **{"refresh_seconds": 0.01, **options}))
        return made[-1]

    yield make
    for replica in made:
        replica.stop()


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands until the test moves it."""
    return Clock()
