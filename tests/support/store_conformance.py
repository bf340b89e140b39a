"""The shipped suites, and what only several programs can do to a store: races and kills."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest

from agentkit.library.store import Store
from agentkit.testing import StoreConformance
from agentkit.testing.conformance.races import race_faults, read_whole_snapshots
from agentkit.testing.store_fixtures import OpenAgain, fault_runs, start_writer, together
from agentkit.testing.store_writer import batch
from support.store_killer import kill_writers
from support.store_race import run_race

_KILLS = 5
_CAN_FORK = hasattr(os, "fork") and hasattr(signal, "SIGKILL")


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

    @pytest.mark.skipif(not _CAN_FORK, reason="the system can not fork and kill")
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
