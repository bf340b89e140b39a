"""Later steps of a run are retrieved by what its calls gave, by name and type."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Agent, Library, ToolDefinition, tool
from agentkit.messages import ToolCall
from agentkit.retrieval import CascadeRetriever, InHand, StepRetriever, values_in_hand
from agentkit.testing import ScriptedModel

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=30,
)


def needing(name, text, **parameters):
    """A tool whose parameters are all required."""
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return ToolDefinition.from_schema(name, text, schema)


LIBRARY = Library(
    [
        needing("find_hotels", "Find hotels in a city.", city="string"),
        needing("hotel_rooms", "Rooms that are free.", hotelId="integer"),
        needing("room_price", "Price of rooms in hotels.", room="string", nights="integer"),
        needing("hotel_flag", "Whether a hotel is open.", hotelId="boolean"),
    ]
)


def names(found):
    return [hit.definition.name for hit in found.hits]


async def test_a_tool_that_takes_what_was_given_moves_up():
    """The name may be written otherwise; a value of a type that it cannot take does not count."""
    retriever = CascadeRetriever()
    assert isinstance(retriever, StepRetriever)
    before = await retriever.retrieve("hotels", LIBRARY)
    in_hand = values_in_hand([{"hotels": [{"hotel_id": 7, "name": "Ritz"}]}])
    after = await retriever.retrieve_next("hotels", LIBRARY, in_hand)
    gains = {hit.definition.name: hit.fields.get("in_hand", 0.0) for hit in after.hits}
    assert 0 < gains["hotel_rooms"] <= 0.3
    assert gains["hotel_flag"] == gains["find_hotels"] == 0.0
    assert names(after).index("hotel_rooms") <= names(before).index("hotel_rooms")
    hit = next(one for one in after.hits if one.definition.name == "hotel_rooms")
    assert "takes what earlier calls gave" in hit.reason


async def test_a_tool_gains_by_the_share_of_what_it_needs():
    """Half of what it needs is half of the weight; a name that several tools need tells less."""
    stage = [InHand(weight=0.5)]
    found = await CascadeRetriever(stages=stage).retrieve_next(
        "anything", LIBRARY, values_in_hand([{"room": "12a"}])
    )
    told = 1 - math.log(2) / math.log(5)  # of four tools one needs it
    assert [hit.definition.name for hit in found.hits] == ["room_price"]
    assert found.hits[0].score == pytest.approx(0.5 * told / 2)


WORDS = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "value", "is_taken"),
    [
        ({"type": "integer"}, 7, True),
        ({"type": "number"}, 7, True),
        ({"type": "integer"}, "7", True),
        ({"type": "string"}, 7, True),
        (WORDS, "Oslo", True),
        (WORDS, ["Oslo"], True),
        ({"enum": ["km"]}, "mile", False),
        ({"enum": ["km"]}, "km", True),
        ({"type": "boolean"}, 7, False),
        ({"type": "integer"}, {"a": 1}, False),
    ],
)
async def test_a_value_is_taken_in_any_form_that_it_can_be_written_in(schema, value, is_taken):
    """A number as text, a text as a list of one; never a value of another kind, or beside an enum."""
    properties = {"properties": {"x": schema}, "required": ["x"]}
    tools = [ToolDefinition.from_schema(name, "", properties) for name in ("one", "two")]
    library = Library([*tools, *LIBRARY])
    found = await CascadeRetriever(stages=[InHand()]).retrieve_next(
        "x", library, values_in_hand([{"x": value}])
    )
    assert bool(found.hits) is is_taken


async def test_an_empty_library_has_no_tool_for_what_is_in_hand():
    """Nothing is found, and nothing fails."""
    found = await CascadeRetriever().retrieve_next("x", Library(), values_in_hand([{"id": 1}]))
    assert found.hits == ()


async def test_with_nothing_in_hand_nothing_changes():
    """A first request is ranked as if the stage was not there."""
    retriever = CascadeRetriever()
    assert (await retriever.retrieve_next("hotels", LIBRARY, ())).hits == (
        await retriever.retrieve("hotels", LIBRARY)
    ).hits


@settings(deadline=None)
@given(st.lists(json_values, max_size=4))
def test_any_results_give_few_slots(results):
    """Whatever tools return: at most 256 names, each once."""
    slots = values_in_hand(results)
    assert len({slot.name for slot in slots}) == len(slots) <= 256


def test_of_very_much_only_some_is_looked_at():
    """Wide and deep results end early."""
    deep = {"a": {}}
    for _ in range(50):
        deep = {"a": deep}
    wide = {f"field_{number}": number for number in range(10_000)}
    assert len(values_in_hand([deep, wide])) == 256


async def test_the_search_of_a_run_uses_what_its_calls_gave():
    """Asked for the same words, ``search_tools`` offers the tool that takes the result first."""

    @tool(effects=["reads"])
    def find_place(text: str) -> dict[str, str]:
        """Find a place."""
        return {"place_key": "ams"}

    fillers = [needing(f"trip_{n}", "Plan a trip.", day="string") for n in range(40)]
    wanted = needing("zz_trip", "Plan a trip.", place_key="string")
    library = Library([find_place, *fillers, wanted])
    model = ScriptedModel(
        [
            [ToolCall(call_id="1", name="find_place", arguments={"text": "Amsterdam"})],
            [ToolCall(call_id="2", name="search_tools", arguments={"query": "plan a trip"})],
            "Done.",
        ]
    )
    result = await Agent(model, library=library).run("find a place")
    (listing,) = [one.text for one in result.episode.results if one.name == "search_tools"]
    assert listing.splitlines()[1].startswith("zz_trip(")
