"""Other tools are still found by their own requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Library, ToolDefinition
from agentkit.errors import UsageError
from agentkit.evolution.gates import own_requests, retrieval_gate, retrieved_selections
from agentkit.retrieval import default_retriever
from agentkit.tools import Example

CITIES = ["Bergen", "Lima", "Oslo", "Turin", "Cardiff", "Ulm", "Aker", "Moss"]
OWN = {
    "find_hotels": [f"a hotel in {city}" for city in CITIES],
    "find_trains": [f"a train to {city}" for city in CITIES],
    "exchange_rate": ["euros in kroner", "what is a euro worth"],
}


def definition(name, text, query=""):
    """A tool with one text parameter and perhaps one worked example."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    made = ToolDefinition.from_schema(name, text, schema)
    if not query:
        return made
    return replace(made, examples=(Example(arguments={"text": "x"}, result=1, query=query),))


@pytest.fixture
def library():
    """Three tools that have nothing in common."""
    return Library(
        [
            definition("find_hotels", "Hotels in a city.", "somewhere to sleep in Bergen"),
            definition("find_trains", "Trains to a city."),
            definition("exchange_rate", "What a currency is worth in another, such as euros."),
        ]
    )


def changed(library, text):
    """The library with another description of the trains."""
    return library.with_tools([definition("find_trains", text)])


async def test_a_modest_description_robs_nobody(library):
    """Each other tool stays first for its own requests, and the ranks say so."""
    after = changed(library, "Trains to a city by day.")
    report = await retrieval_gate(
        library, after, tool="find_trains", retriever=default_retriever(), requests=OWN, k=1
    )
    assert report.statistics["lost"] == 0
    assert report.statistics["of"] == 10
    assert report.statistics["candidate_reciprocal_rank"] == 1
    assert report.decision == "wait"  # ten requests are too few for a limit of 2%


async def test_a_greedy_description_fails(library):
    """One that names what belongs to a neighbour takes the first place from it."""
    greedy = "Trains, hotel, hotels: a hotel in a city, hotel room in any city, hotel hotel hotels."
    report = await retrieval_gate(
        library,
        changed(library, greedy),
        tool="find_trains",
        retriever=default_retriever(),
        requests={**OWN, "find_hotels": [f"a hotel room in any {city}" for city in CITIES]},
        k=1,
    )
    assert report.gate == "retrieval bystanders"
    assert report.decision == "fail"
    assert report.statistics["robbed"] >= 4
    found = report.statistics
    assert found["candidate_reciprocal_rank"] < found["control_reciprocal_rank"]


async def test_requests_come_from_worked_examples_by_default(library):
    """Tools whose examples keep no request are left out."""
    assert own_requests(library) == {"find_hotels": ("somewhere to sleep in Bergen",)}
    report = await retrieval_gate(
        library, library, tool="find_trains", retriever=default_retriever()
    )
    assert report.statistics["requests"] == 1


async def test_a_tool_that_is_gone_is_lost(library):
    """A library without the tool can not find it."""
    found = await retrieved_selections(
        library,
        library.without(["exchange_rate"]),
        retriever=default_retriever(),
        requests={"exchange_rate": ["euros in kroner"]},
    )
    assert "exchange_rate" in found[0].control
    assert "exchange_rate" not in found[0].candidate


async def test_nothing_to_ask_and_nothing_to_show():
    """Empty libraries give a report that waits; a shortlist of none is a mistake."""
    empty = Library([])
    report = await retrieval_gate(empty, empty, tool="x", retriever=default_retriever())
    assert (report.decision, report.statistics["control_reciprocal_rank"]) == ("wait", 0)
    with pytest.raises(UsageError, match="k must be 1"):
        await retrieval_gate(empty, empty, tool="x", retriever=default_retriever(), k=0)
