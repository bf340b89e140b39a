"""Tests of many at once: writers that race, that are killed, and readers between them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest

from agentkit.errors import StaleVersionError
from agentkit.library.chain_faults import verify_chain
from agentkit.library.store import LibraryChange, Store
from agentkit.testing.store_fixtures import (
    OpenAgain,
    StoreFixtures,
    fault_runs,
    start_writer,
    together,
)
from agentkit.testing.store_killer import kill_writers
from agentkit.testing.store_race import Racer, race_faults, run_race
from agentkit.testing.store_writer import TOOLS_EACH, batch, commit_many
from agentkit.tools.definition import Description, ToolDefinition

_KILLS = 5
_CAN_FORK = hasattr(os, "fork") and hasattr(signal, "SIGKILL")


class StoreRaceConformance(StoreFixtures):
    """What several writers and readers do to one store at the same time.

    ``AGENTKIT_FAULT_RUNS`` says how many writers are killed; five without it.
    """

    def test_threads_lose_no_proposal(self, store: Store) -> None:
        """Threads that change the same tools: each proposal once, no gap, no update lost."""

        def offer(first: int) -> None:
            racer = Racer(store)
            for number in range(first, first + 15):
                racer.offer(number)

        assert together([partial(offer, 15 * place) for place in range(4)]) == [None] * 4
        assert race_faults(store, 60) == ()

    def test_processes_lose_no_proposal(self, store: Store, store_url: str) -> None:
        """Programs that change the same tools: each proposal once, no gap, no update lost."""
        report = run_race(store_url, writers=3, each=20)
        assert (report.made, report.known) == (60, 0)
        assert race_faults(store, 60) == ()

    def test_processes_make_no_proposal_twice(self, store: Store, store_url: str) -> None:
        """Programs that all offer the same proposals make each of them once between them."""
        report = run_race(store_url, writers=3, each=30, is_shared=True)
        assert (report.made, report.known) == (30, 60)
        assert race_faults(store, 30) == ()

    def test_stale_writers_change_nothing(self, store: Store) -> None:
        """However many build on old snapshots at once, none of them leaves a trace."""
        for version in range(4):
            store.commit(batch("p", version), expected_version=version)
        changes = [
            LibraryChange(
                proposal_id=f"late {place}",
                upserts=(ToolDefinition(name="p_0", description=Description(summary="late")),),
            )
            for place in range(8)
        ]
        outcomes = together(
            [
                partial(store.commit, change, expected_version=place % 4)
                for place, change in enumerate(changes)
            ]
        )
        assert all(isinstance(one, StaleVersionError) for one in outcomes)
        assert list(store.versions()) == [1, 2, 3, 4]
        assert [one.proposal_id for one in store.history("p_0")] == [f"p-{n}" for n in range(4)]

    def test_a_commit_sent_again_by_another_process_is_known(
        self, store: Store, store_url: str
    ) -> None:
        """What one program committed is answered to the next that sends it, and not made again."""
        assert store.commit(batch("p", 0), expected_version=0) == 1
        assert store.commit(batch("q", 0), expected_version=1) == 2
        with start_writer(store_url, "commit", "p", 2) as writer:
            writer.communicate()
        assert writer.returncode == 0
        assert list(store.versions()) == [1, 2, 3]
        assert [one.proposal_id for one in store.history("p_0")] == ["p-0", "p-1"]

    @pytest.mark.skipif(not _CAN_FORK, reason="the system can not fork and kill")
    def test_writers_killed_in_mid_commit_lose_double_and_tear_nothing(
        self, store_url: str
    ) -> None:
        """After each kill: what was answered is kept; what was sent is kept whole and once."""
        kills = fault_runs(_KILLS)
        assert kill_writers(store_url, kills).in_commit == kills

    def test_readers_see_whole_snapshots_while_threads_commit(self, store: Store) -> None:
        """What is read during commits is one version whole, and never an older one than before."""
        over = threading.Event()
        works: list[Callable[[], None]] = [partial(_read, store, over) for _ in range(3)]
        works.append(partial(_write, store, over))
        assert together(works) == [None] * 4

    def test_readers_see_whole_snapshots_while_a_process_commits(
        self, open_store_again: OpenAgain, store_url: str
    ) -> None:
        """The same through connections of their own, with the writer in another program."""
        over, readers = threading.Event(), [open_store_again() for _ in range(2)]
        with ExitStack() as stack:
            writer = stack.enter_context(start_writer(store_url, "commit", "p", 40))

            def wait() -> None:
                writer.communicate()
                over.set()

            works: list[Callable[[], None]] = [partial(_read, one, over) for one in readers]
            works.append(wait)
            assert together(works) == [None] * 3
        assert writer.returncode == 0
        assert [reader.load().version for reader in readers] == [40, 40]


def _write(store: Store, over: threading.Event) -> None:
    try:
        commit_many(store, "p", 30)
    finally:
        over.set()


def _read(store: Store, over: threading.Event) -> None:
    """Read until nobody writes any more; each look is checked by itself and against the last."""
    version = seen = 0
    while True:
        is_last = over.is_set()
        library = store.load()
        texts = {tool.definition.description.summary for tool in library}
        assert library.version >= version
        assert len(library) == (TOOLS_EACH if library.version else 0)
        assert texts == ({f"text {library.version - 1}"} if library.version else set())
        events = store.events()
        assert len(events) >= max(seen, library.version)
        assert verify_chain(events) == ()
        version, seen = library.version, len(events)
        if is_last:
            return
