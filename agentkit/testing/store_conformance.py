"""The tests that every store passes, ours and yours; needs pytest.

A plugin's test module subclasses all of them at once and says how to get an empty store:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store_url(self, tmp_path):
            return f"mystore:{tmp_path}"

Call ``pytest.register_assert_rewrite("agentkit.testing.conformance")`` in your ``conftest.py`` to
see the values behind a failed assertion.
"""

from __future__ import annotations

from agentkit.testing.conformance.abilities import StoreAbilityConformance
from agentkit.testing.conformance.contents import StoreContentConformance
from agentkit.testing.conformance.copies import StoreCopyConformance
from agentkit.testing.conformance.episodes import EpisodeStoreConformance
from agentkit.testing.conformance.events import EventStoreConformance
from agentkit.testing.conformance.formats import StoreFormatConformance
from agentkit.testing.conformance.races import StoreRaceConformance
from agentkit.testing.conformance.tools import ToolStoreConformance
from agentkit.testing.store_fixtures import StoreFixtures

__all__ = [
    "EpisodeStoreConformance",
    "EventStoreConformance",
    "StoreAbilityConformance",
    "StoreConformance",
    "StoreContentConformance",
    "StoreCopyConformance",
    "StoreFixtures",
    "StoreFormatConformance",
    "StoreRaceConformance",
    "ToolStoreConformance",
]


class StoreConformance(
    ToolStoreConformance,
    EventStoreConformance,
    EpisodeStoreConformance,
    StoreRaceConformance,
    StoreContentConformance,
    StoreFormatConformance,
    StoreAbilityConformance,
    StoreCopyConformance,
):
    """All suites in one, for a store that keeps everything; what it can not do is skipped.

    Subclass it in a test module, name the class ``Test...`` and override one fixture. See
    ``StoreFixtures`` for the choice; docs/write-a-store.md shows a complete example.
    """
