"""The Redis store passes the tests of all stores, on a real server."""

from __future__ import annotations

import pytest

from agentkit.testing import StoreConformance


class TestRedisStore(StoreConformance):
    """The store of the plugin."""

    @pytest.fixture
    def store_url(self, library_url: str) -> str:
        return library_url
