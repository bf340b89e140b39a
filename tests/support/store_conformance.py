"""The shipped suites, and what only several programs can do to a store: races and kills."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest

from agentkit.library.checking import check_store
from agentkit.library.copying import Copied, copy_store
from agentkit.library.memory import MemoryStore
from agentkit.library.store import Store
from agentkit.testing import StoreConformance
from agentkit.testing.conformance.fixtures import OpenAgain, start_writer, together
from agentkit.testing.conformance.suite import read_whole_snapshots
from agentkit.testing.conformance.writer import batch
from support.cost import fault_runs
from support.histories import HistoryStep, write_history
from support.store_killer import kill_writers
from support.store_race import race_faults, run_race

_KILLS = 5
_CAN_FORK = hasattr(os, "fork") and hasattr(signal, "SIGKILL")


_FIRST = (
    HistoryStep(events=1, episodes=1),
    HistoryStep(wishes={"a": ("one", "here"), "b": ("two", ""), "天気": ("", "")}, events=2),
    HistoryStep(wishes={"b": None}, episodes=3),
    HistoryStep(wishes={"a": ("one", "elsewhere")}, reason='"quoted"; --\n🌦️', events=1),
    HistoryStep(events=3),
)
_SECOND = (
    HistoryStep(wishes={"a": None, "天気": None, "z": ("", "")}, episodes=1),
    HistoryStep(wishes={"b": ("two", ""), "a": ("back", "")}, events=2, episodes=1),
    HistoryStep(events=1),
)
_ALL = Copied(versions=5, events=10, episodes=6)


class ServedStoreConformance(StoreConformance):
    """For a store that several programs open by its URL.

    ``AGENTKIT_FAULT_RUNS`` says how many writers are killed; five without it.
    """

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

    @pytest.mark.skipif(not _CAN_FORK, reason="the system cannot fork and kill")
    def test_writers_killed_in_mid_commit_lose_double_and_tear_nothing(
        self, store_url: str
    ) -> None:
        """After each kill: what was answered is kept; what was sent is kept whole and once."""
        kills = fault_runs(_KILLS)
        assert kill_writers(store_url, kills).in_commit == kills

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

            works: list[Callable[[], None]] = [
                partial(read_whole_snapshots, one, over) for one in readers
            ]
            works.append(wait)
            assert together(works) == [None] * 3
        assert writer.returncode == 0
        assert [reader.load().version for reader in readers] == [40, 40]

    def test_a_history_is_copied_into_it(self, store: Store) -> None:
        """A copy from another store is the same in every version, event and episode, and sound."""
        source = MemoryStore()
        write_history(source, (*_FIRST, *_SECOND))
        assert copy_store(source, store) == _ALL
        for version in source.versions():
            ours, theirs = source.load(version), store.load(version)
            assert list(theirs.tools) == list(ours.tools)
            assert theirs.digest == ours.digest
        assert check_store(store).faults == ()

    def test_its_history_is_copied_out_of_it(self, store: Store) -> None:
        """A copy into another store holds all that this one holds."""
        write_history(store, (*_FIRST, *_SECOND))
        target = MemoryStore()
        assert copy_store(store, target) == _ALL
