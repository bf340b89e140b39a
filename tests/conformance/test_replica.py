"""A replica keeps the promises of a store to the one who writes through it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentkit.library import Replica, Store
from agentkit.testing import StoreConformance


class TestReplica(StoreConformance):
    """Over a store in memory; what another program commits comes a little later, by design."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        """A replica of an empty store that nobody looks at but who writes."""
        with Replica("memory:", refresh_seconds=3600) as replica:
            yield replica
