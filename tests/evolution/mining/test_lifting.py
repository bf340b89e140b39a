"""What becomes a parameter, what stays constant, what is returned, and how it is all named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.evolution.lifting import LiftingConfig, identifier, tool_name
from agentkit.evolution.mining import MiningConfig, mine
from agentkit.evolution.trajectories import Given

PLACES = [("London", "Oslo"), ("Paris", "Rome"), ("Lima", "Quito"), ("Kyiv", "Bern")]


@pytest.fixture
def trips(trip):
    return [trip(at, *pair) for at, pair in enumerate(PLACES)]


def only(trips, tools, **lifting):
    """The one composite that is mined."""
    (composite,) = mine(trips, tools, MiningConfig(lifting=LiftingConfig(**lifting))).composites
    return composite


def test_the_program(trips, travel_tools):
    """The text reads as a person would write it."""
    source = only(trips, travel_tools).source
    assert source.partition('"""\n')[2] == (
        "    destination_airport = search_airport(query=destination_query)\n"
        "    origin_airport = search_airport(query=origin_query)\n"
        "    return find_flights(originSkyId=origin_airport[0]['skyId'], "
        "destinationSkyId=destination_airport[0]['skyId'], date=date, cabin=cabin)\n"
    )


def test_what_never_varied_becomes_a_default(trips, travel_tools):
    """The parameter can be left out, and is then what it always was."""
    parameter = only(trips, travel_tools).lifting.parameters[-1]
    assert (parameter.name, parameter.default.value) == ("cabin", "economy")


def test_what_never_varied_can_stay_a_constant(trips, travel_tools):
    """With the policy ``keep`` there is no parameter for it."""
    composite = only(trips, travel_tools, constants="keep")
    assert "cabin='economy'" in composite.source
    assert "cabin" not in composite.definition.signature.properties


def dated(trips, *, last=None):
    """Trips whose search of airports takes the date of travel too."""
    made = []
    for at, trip in enumerate(trips):
        date = trip.steps[2].sources["date"]
        first = {**trip.steps[0].sources, "date": date}
        if last is not None and at == len(trips) - 1:
            first["date"] = Given(value=last)
        steps = (replace(trip.steps[0], sources=first), *trip.steps[1:])
        made.append(replace(trip, steps=steps))
    return made


def test_arguments_equal_in_all_occurrences_are_one_parameter(trips, travel_tools):
    """The date that goes to two calls is asked for once."""
    parameters = only(dated(trips), travel_tools).lifting.parameters
    (date,) = [one for one in parameters if one.name == "date"]
    assert len(date.slots) == 2


def test_a_result_needed_later_is_returned_too(trips, travel_tools):
    """When a later call or the answer needs an inner result, the program returns both by name."""
    shown = [replace(trip, answered=frozenset({0})) for trip in trips]
    lifting = only(shown, travel_tools).lifting
    assert lifting.keys == ("origin_airport", "flights")
    assert "return {" in only(shown, travel_tools).source


@pytest.mark.parametrize(
    ("wanted", "name"),
    [("result", "result_"), ("2nd", "value_2nd"), ("__x", "x"), ("naïve", "na_ve"), ("", "value")],
)
def test_odd_names(wanted, name):
    """Whatever a parameter was called, its name in the program is one that the language takes."""
    assert identifier(wanted, taken=()) == name


def test_names_of_composites_are_short_and_distinct():
    """Long chains are named by their ends; names stay within what providers take."""
    many = [f"look_up_something_quite_long_{at}" for at in range(5)]
    assert tool_name(many) != tool_name(many[::-1])
    assert all(len(tool_name(each)) <= 64 for each in (many, many[:2], ["x" * 90, "y"]))
    assert tool_name(["Get_Reviews(Tips)", "Hotels.Search"]) == "get_reviews_tips_and_hotels_search"
    assert tool_name(["add", "add"]) == "add_and_again"
    assert tool_name(["2x", "y"]).isidentifier()
