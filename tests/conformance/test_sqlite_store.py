"""``sqlite:///`` passes the shipped suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkit.testing import StoreConformance


class TestSQLiteStore(StoreConformance):
    """A file store: everything applies."""

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'store.db'}"
