"""The definition of a mined composite, in four levels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import open_store
from agentkit.composites.parser import parse
from agentkit.evolution import ToolManager
from agentkit.evolution.mined import insert_mined, pinned_to, with_recordings
from agentkit.evolution.mining import MiningConfig, mine
from agentkit.evolution.patterns import SearchLimits
from agentkit.evolution.trajectories import Flow, Step
from agentkit.library import Library
from agentkit.tools.definition import Effects, Example
from agentkit.tools.tool import Tool
from agentkit.tools.validation import validate_arguments

PLACES = [("London", "Oslo"), ("Paris", "Rome"), ("Lima", "Quito"), ("Kyiv", "Bern")]


@pytest.fixture
def trips(trip):
    return [trip(at, *pair) for at, pair in enumerate(PLACES)]


def only(trips, tools, rules=None):
    """The one composite that is mined."""
    (composite,) = mine(trips, tools, rules).composites
    return composite


def test_the_contract_comes_from_the_children(trips, travel_tools):
    """Schemas, effects and pins are those of the tools that are called."""
    signature = only(trips, travel_tools).definition.signature
    assert signature.properties["cabin"] == {
        "type": "string",
        "enum": ["economy", "business"],
        "default": "economy",
    }
    assert signature.required == ("destination_query", "origin_query", "date")
    assert signature.effects == Effects.of(["reads"])
    assert {child.name: child.digest for child in signature.children} == {
        name: travel_tools[name].digest for name in ("search_airport", "find_flights")
    }


def test_the_words_come_from_the_children(trips, travel_tools):
    """The summary tells the steps; a parameter keeps the text it had."""
    description = only(trips, travel_tools).definition.description
    assert description.summary == (
        "3 calls in one. Summary of search_airport. Then: Summary of find_flights."
    )
    assert description.parameters["origin_query"] == "City or airport."


def test_the_worked_calls_are_recorded_ones(trips, travel_tools):
    """They fit the parameters, say what came back, and name the request."""
    definition = only(trips, travel_tools).definition
    assert len(definition.examples) == 3
    for example in definition.examples:
        assert validate_arguments(definition, example.arguments) == ()
        assert "offers" in example.result
        assert example.query.startswith("Flights from")


def test_shared_parts_of_schemas_come_along(trips, travel_tools):
    """A parameter whose schema refers to a shared part still does, under a name of its own."""
    day = {"type": "string", "pattern": "^[0-9-]+$"}
    old = travel_tools["find_flights"]
    properties = {**old.signature.properties, "date": {"$ref": "#/$defs/Day"}}
    parameters = {**old.signature.parameters, "properties": properties, "$defs": {"Day": day}}
    signature = replace(old.signature, parameters=parameters)
    travel_tools["find_flights"] = replace(old, signature=signature)
    definition = only(trips, travel_tools).definition
    assert definition.signature.properties["date"] == {"$ref": "#/$defs/call2_Day"}
    assert definition.signature.parameters["$defs"] == {"call2_Day": day}
    good = dict(definition.examples[0].arguments)
    assert validate_arguments(definition, good) == ()
    assert validate_arguments(definition, {**good, "date": "May"}) != ()


def test_the_source_parses_to_the_body(trips, travel_tools):
    """What people read is what is inserted."""
    composite = only(trips, travel_tools)
    tools = {name: Tool(definition=tool) for name, tool in travel_tools.items()}
    assert parse(composite.source, tools).program == composite.lifting.program


def test_recordings_let_children_be_answered(trips, travel_tools):
    """The recorded calls become worked calls of the children, each once."""
    composite = only(trips, travel_tools)
    library = Library(travel_tools.values())
    new = with_recordings(library, [composite]).worked_calls
    assert {name: len(calls) for name, calls in new.items()} == {
        "search_airport": 6,
        "find_flights": 3,
    }
    manager = ToolManager(open_store("memory:"))
    manager.register(travel_tools.values())
    manager.record(new)
    after = manager.library
    assert with_recordings(after, [composite]).worked_calls == {}
    pinned = pinned_to(composite, after)
    assert {c.digest for c in pinned.signature.children} == {
        after[name].definition.digest for name in new
    }


def test_a_contradicted_worked_call_is_left_out(trips, travel_tools):
    """A tool keeps one answer to a question; worked calls that rely on another are not used."""
    composite = only(trips, travel_tools)
    recorded = composite.worked[0].recorded[-1]
    own = Example(arguments=recorded.arguments, result="as its author says")
    tools = {**travel_tools, "find_flights": replace(travel_tools["find_flights"], examples=(own,))}
    recordings = with_recordings(Library(tools.values()), [composite])
    new = recordings.worked_calls["find_flights"]
    assert len(new) == 3
    assert own.arguments not in [example.arguments for example in new]
    (chosen,) = recordings.composites
    assert composite.worked[0].example not in chosen.definition.examples
    assert len(chosen.definition.examples) == 3


def test_composites_of_composites_can_be_tried(trips, travel_tools):
    """The records behind a worked call go down to the primitives."""
    made = []
    for trip in trips:
        token = Flow(step=2, path=("offers", 0, "token"))
        details = Step(tool="flight_details", sources={"token": token}, result={"seats": 9})
        made.append(replace(trip, steps=(*trip.steps, details)))
    rules = MiningConfig(search=SearchLimits(max_calls=3))
    first, second = sorted(mine(made, travel_tools, rules).composites, key=lambda one: one.round)
    assert (first.round, second.round) == (1, 2)
    assert {call.tool for call in second.worked[0].recorded} == set(travel_tools)
    store = open_store("memory:")
    ToolManager(store).register(travel_tools.values())
    outcomes = insert_mined(store, [first, second])
    assert [outcome.to_json()["outcome"] for outcome in outcomes.values()] == ["added", "added"]
    assert [outcome.depth for outcome in outcomes.values()] == [1, 2]
