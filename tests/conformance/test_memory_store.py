"""``memory:`` passes the shipped suites, as far as they apply to one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentkit import open_store
from agentkit.library import Store
from agentkit.testing import StoreConformance


class TestMemoryStore(StoreConformance):
    """A store of this process: it cannot be opened again, so those tests are skipped."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        store = open_store("memory:")
        yield store
        store.close()
