"""Everything that a store passes, ours and yours; needs pytest.

A plugin's test module subclasses all suites at once and says how to get an empty store:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store_url(self, tmp_path):
            return f"mystore:{tmp_path}"

Call ``pytest.register_assert_rewrite("agentkit.testing.conformance")`` in your ``conftest.py`` to
see the values behind a failed assertion.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from agentkit.library.chain import verify_chain
from agentkit.library.store import Store
from agentkit.testing.conformance.capabilities import StoreCapabilityConformance
from agentkit.testing.conformance.contents import StoreContentConformance
from agentkit.testing.conformance.episodes import EpisodeStoreConformance
from agentkit.testing.conformance.events import EventStoreConformance, check_agree
from agentkit.testing.conformance.fixtures import StoreFixtures, together
from agentkit.testing.conformance.formats import StoreFormatConformance
from agentkit.testing.conformance.tools import ToolStoreConformance
from agentkit.testing.conformance.writer import TOOLS_EACH, commit_many


class StoreRaceConformance(StoreFixtures):
    """Several writers and readers of one store at the same time.

    Our own test suite does the same with several processes, and kills them.
    """

    def test_threads_lose_no_change(self, store: Store) -> None:
        """Threads that commit at the same time: each change once, no gap, one whole chain."""
        writers = [partial(commit_many, store, name, 15) for name in ("p", "q", "r")]
        assert together(writers) == [None] * 3
        check_agree(store)
        assert len(store.versions()) == 45
        for name in ("p", "q", "r"):
            made = [one.proposal_id for one in store.history(f"{name}_0")]
            assert made == [f"{name}-{number}" for number in range(15)]

    def test_readers_see_whole_snapshots_while_a_thread_commits(self, store: Store) -> None:
        """A read during commits sees one whole version, never an older one than before."""
        over = threading.Event()

        def write() -> None:
            try:
                commit_many(store, "p", 30)
            finally:
                over.set()

        readers: list[Callable[[], None]] = [
            partial(read_whole_snapshots, store, over) for _ in range(3)
        ]
        assert together([*readers, write]) == [None] * 4


def read_whole_snapshots(store: Store, over: threading.Event) -> None:
    """Read until nobody writes any more; each read is checked alone and against the last."""
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


class StoreConformance(
    ToolStoreConformance,
    EventStoreConformance,
    EpisodeStoreConformance,
    StoreRaceConformance,
    StoreContentConformance,
    StoreFormatConformance,
    StoreCapabilityConformance,
):
    """All suites in one, for a store that keeps everything; what it cannot do is skipped.

    Subclass it in a test module, name the class ``Test...`` and override one fixture. See
    ``StoreFixtures`` for the choice; docs/write-a-store.md shows a complete example.
    """
