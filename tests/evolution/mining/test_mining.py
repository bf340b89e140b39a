"""Composites come out of what episodes did."""

from __future__ import annotations

import pytest

from agentkit.evolution.mining import mine

PLACES = [("London", "Oslo"), ("Paris", "Rome"), ("Lima", "Quito"), ("Kyiv", "Bern")]


@pytest.fixture
def trips(trip):
    """Four trips; the last one looks the airports up in the other order."""
    return [trip(at, *pair, swapped=at == 3) for at, pair in enumerate(PLACES)]


def test_a_recurring_chain_becomes_one_composite(trips, travel_tools):
    """Two look-ups and the search that uses them become one tool with the varying arguments."""
    result = mine(trips, travel_tools)
    (composite,) = result.composites
    assert composite.name == "search_airport_and_find_flights"
    assert [p.name for p in composite.lifting.parameters] == [
        "destination_query",
        "origin_query",
        "date",
        "cabin",
    ]
    assert (composite.support, composite.uses, composite.calls) == (4, 4, 3)
    assert (result.calls, result.calls_after) == (12, 4)
