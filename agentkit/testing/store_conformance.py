"""The tests that every store passes, ours and yours; needs pytest.

A plugin's test module subclasses all suites and says how to get an empty store:

    class TestMyStore(ToolStoreConformance, EventStoreConformance, EpisodeStoreConformance):
        @pytest.fixture
        def store_url(self, tmp_path):
            return f"mystore:{tmp_path}"

Call ``pytest.register_assert_rewrite("agentkit.testing.tool_store_conformance",
"agentkit.testing.event_store_conformance", "agentkit.testing.episode_store_conformance")`` in your
``conftest.py`` to see the values behind a failed assertion.
"""

from __future__ import annotations

from agentkit.testing.episode_store_conformance import EpisodeStoreConformance
from agentkit.testing.event_store_conformance import EventStoreConformance
from agentkit.testing.store_fixtures import StoreFixtures
from agentkit.testing.tool_store_conformance import ToolStoreConformance

__all__ = [
    "EpisodeStoreConformance",
    "EventStoreConformance",
    "StoreFixtures",
    "ToolStoreConformance",
]
