"""How a replica stands to its store is seen where metrics are collected."""

from __future__ import annotations

import gc

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreError
from agentkit.library import LibraryChange, Replica
from agentkit.testing.unreliable_store import UnreliableStore
from agentkit.tracing import observe_replica


def read(telemetry):
    """The numbers by the names of their metrics, of the replica named edge."""
    data = telemetry.reader.get_metrics_data()
    if data is None:
        return {}
    return {
        metric.name: point.value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if point.attributes == {"agentkit.replica.name": "edge"}
    }


def test_a_replica_is_observed(telemetry):
    """Version, staleness and failures are those of its status; one that is gone says nothing."""
    store = UnreliableStore(open_store("memory:"))
    replica = Replica(store, refresh_seconds=3600)
    observe_replica(replica, name="edge", meter_provider=telemetry.meters)
    change = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
    replica.commit(change, expected_version=0)
    seen = read(telemetry)
    assert 0 <= seen.pop("agentkit.library.staleness") < 3600
    assert seen == {
        "agentkit.library.version": 1,
        "agentkit.store.away": 0,
        "agentkit.library.behind": 0,
        "agentkit.library.refreshes": 1,
        "agentkit.library.refresh.failures": 0,
    }
    store.away()
    with pytest.raises(StoreError):
        replica.refresh()
    seen = read(telemetry)
    assert (seen["agentkit.store.away"], seen["agentkit.library.refresh.failures"]) == (1, 1)
    replica.close()
    del replica
    gc.collect()
    assert read(telemetry) == {}
