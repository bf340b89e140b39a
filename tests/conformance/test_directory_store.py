"""``dir:PATH`` passes the shipped suites, with YAML and with JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkit.testing.store_conformance import (
    EpisodeStoreConformance,
    EventStoreConformance,
    ToolStoreConformance,
)


class TestDirectoryStore(ToolStoreConformance, EventStoreConformance, EpisodeStoreConformance):
    """A folder: everything applies."""

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"dir:{tmp_path / 'library'}"


class TestDirectoryStoreOfJson(ToolStoreConformance):
    """A folder of JSON files keeps tools alike; events and episodes do not know the difference."""

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"dir:{tmp_path / 'library'}?format=json"
