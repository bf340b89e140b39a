"""From patterns to composites."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from agentkit import Library, open_store
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.mining import mine, pinned_to, with_recordings
from agentkit.evolution.trajectories import Flow, Given, Step, Trajectory
from agentkit.tools.definition import Effects, Example
from agentkit.tools.validation import validate_arguments

# --- Calls are only put together when nothing has to happen between them -------------------------


def step(tool, **sources):
    """A call; its result is told apart by the arguments."""
    return Step(tool=tool, sources=sources, result={"id": f"{tool} {sources}"})


def corpus_ordering(between, copies=6):
    """Trajectories of two linked calls with another call in between."""
    made = []
    for number in range(copies):
        steps = [
            step("search", q=Given(value=f"q{number}")),
            step(between, note=Given(value=f"n{number}")),
            step("book", ref=Flow(step=0, path=("id",))),
        ]
        made.append(Trajectory(trajectory_id=f"e{number}", steps=tuple(steps)))
    return made


@pytest.fixture
def tools(travel_tools):
    """Tools of which two read, one writes and one does not say."""
    base = travel_tools["search_airport"]
    effects = {
        "search": Effects.of(["reads"]),
        "look": Effects.of(["reads"]),
        "book": Effects.of(["destructive"]),
        "pay": Effects.of(["writes"]),
        "mystery": Effects(),
    }
    return {
        name: replace(base, name=name, signature=replace(base.signature, effects=one))
        for name, one in effects.items()
    }


@pytest.mark.parametrize("between", ["pay", "mystery"])
def test_a_changing_call_in_between_keeps_its_place(tools, between):
    """Calls that change something, or may, are not moved across."""
    assert mine(corpus_ordering(between), tools).composites == ()


def test_an_argument_made_of_a_result_is_no_parameter(tools):
    """A sentence with a result in it can not be known before: the calls stay apart."""
    made = []
    for number in range(6):
        steps = (
            step("search", q=Given(value=f"q{number}")),
            step(
                "look",
                id=Flow(step=0, path=("id",)),
                text=Given(value=f"about {number}", uses=(0,)),
            ),
        )
        made.append(Trajectory(trajectory_id=f"e{number}", steps=steps))
    assert mine(made, tools).composites == ()


# --- What becomes a parameter, what stays constant, what is returned, and how it is all named ----


PLACES = [("London", "Oslo"), ("Paris", "Rome"), ("Lima", "Quito"), ("Kyiv", "Bern")]


@pytest.fixture
def trips_lifting(trip):
    return [trip(at, *pair) for at, pair in enumerate(PLACES)]


def only_lifting(trips_lifting, tools):
    """The one composite that is mined."""
    (composite,) = mine(trips_lifting, tools).composites
    return composite


def test_the_program(trips_lifting, travel_tools):
    """The text reads as a person would write it."""
    source = only_lifting(trips_lifting, travel_tools).source
    assert source.partition('"""\n')[2] == (
        "    destination_airport = search_airport(query=destination_query)\n"
        "    origin_airport = search_airport(query=origin_query)\n"
        "    return find_flights(originSkyId=origin_airport[0]['skyId'], "
        "destinationSkyId=destination_airport[0]['skyId'], date=date, cabin=cabin)\n"
    )


def test_a_result_needed_later_is_returned_too(trips_lifting, travel_tools):
    """When a later call or the answer needs an inner result, the program returns both by name."""
    shown = [replace(trip, answered=frozenset({0})) for trip in trips_lifting]
    lifting = only_lifting(shown, travel_tools).lifting
    assert lifting.keys == ("origin_airport", "flights")
    assert "return {" in only_lifting(shown, travel_tools).source


# --- The definition of a mined composite, in four levels -----------------------------------------


@pytest.fixture
def trips_candidates(trip):
    return [trip(at, *pair) for at, pair in enumerate(PLACES)]


def only_candidates(trips_candidates, tools):
    """The one composite that is mined."""
    (composite,) = mine(trips_candidates, tools).composites
    return composite


def test_the_contract_comes_from_the_children(trips_candidates, travel_tools):
    """Schemas, effects and pins are those of the tools that are called."""
    signature = only_candidates(trips_candidates, travel_tools).definition.signature
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


def test_the_worked_calls_are_recorded_ones(trips_candidates, travel_tools):
    """They fit the parameters, say what came back, and name the request."""
    definition = only_candidates(trips_candidates, travel_tools).definition
    assert len(definition.examples) == 3
    for example in definition.examples:
        assert validate_arguments(definition, example.arguments) == ()
        assert "offers" in example.result
        assert example.query.startswith("Flights from")


def test_recordings_let_children_be_answered(trips_candidates, travel_tools):
    """The recorded calls become worked calls of the children, each once."""
    composite = only_candidates(trips_candidates, travel_tools)
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


def test_a_contradicted_worked_call_is_left_out(trips_candidates, travel_tools):
    """A tool keeps one answer to a question; worked calls that rely on another are not used."""
    composite = only_candidates(trips_candidates, travel_tools)
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


# --- Whatever values and keys episodes hold, what is mined from them is a program ----------------


UNUSUAL = [-1, -0.0, -2.5, 1e300, -(2**60), 2**300, 2**5_000, math.nan, -math.inf, "", "\ud800"]
UNUSUAL += ["long " * 2_000, None, True, [-1], {"k": -1}, {"\ud800": 1}, {1: 2}]


# --- Composites come out of what episodes did ----------------------------------------------------


@pytest.fixture
def trips_mining(trip):
    """Four trips; the last one looks the airports up in the other order."""
    return [trip(at, *pair, swapped=at == 3) for at, pair in enumerate(PLACES)]


def test_a_recurring_chain_becomes_one_composite(trips_mining, travel_tools):
    """Two look-ups and the search that uses them become one tool with the varying arguments."""
    result = mine(trips_mining, travel_tools)
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
