"""Examples rank tools, and cards show them within a budget."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import (
    Candidates,
    CascadeRetriever,
    ExampleChannel,
    Examples,
    IndexConfig,
    SubGoal,
    card,
    estimate_tokens,
    schema_text,
)
from agentkit.retrieval.cards import first_sentence, type_text
from agentkit.tools import Signature
from agentkit.tools.definition import Example

CHANNEL = ExampleChannel()
WORDS = ("ten", "dollar", "euro", "train", "oslo", "ticket", "rain", "weather", "天气")


def worked(name, *queries, summary="Does something."):
    examples = tuple(Example(arguments={}, query=query) for query in queries)
    return replace(ToolDefinition.from_schema(name, summary, {}), examples=examples)


def scores(library, text, channel=CHANNEL):
    """Likeness by tool name."""
    index = library.derived(IndexConfig(channels=(channel,)))
    found = channel.scores(index, text)
    return {index.names[int(row)]: float(found[row]) for row in np.flatnonzero(index.alive)}


async def run(library, query, goal=None, stage=None):
    stage = stage or Examples()
    candidates = Candidates.of(library, stage.channels)
    return await stage(query, goal or SubGoal(intent=query), candidates)


def test_the_most_alike_example_counts():
    """The same words give 1, some of them less, none 0; other examples do not water it down."""
    library = Library(
        [
            worked("convert", "how much is ten dollars in euros", "rain in oslo", "weather"),
            worked("train", "a train ticket to oslo"),
            worked("nothing"),
        ]
    )
    found = scores(library, "ten dollars in euros, how much?")
    assert found["convert"] == pytest.approx(1.0)
    assert found["train"] == found["nothing"] == 0.0
    partly = scores(library, "ten dollars to oslo")
    assert 0 < partly["train"] < partly["convert"] < 1


def test_likeness_is_the_product_of_both_shares():
    """The rarity of what the request shares, times the share of the example's terms."""
    library = Library([worked("a", "red car"), worked("b", "red bus stop")])
    rarity = {
        "red": np.log(1 + 0.5 / 2.5),
        "car": np.log(1 + 1.5 / 1.5),
        "sky": np.log(1 + 2.5 / 0.5),
    }
    mass = sum(rarity.values())
    found = scores(library, "red car sky")
    assert found["a"] == pytest.approx((rarity["red"] + rarity["car"]) / mass, rel=1e-5)
    assert found["b"] == pytest.approx(rarity["red"] / mass / 3, rel=1e-5)


def test_only_the_last_examples_count():
    """A tool with thousands of episodes does not grow without bound."""
    library = Library([worked("a", "red car", "blue bus", "green tram")])
    assert scores(library, "red car", ExampleChannel(most=2)) == {"a": 0.0}
    assert scores(library, "green tram", ExampleChannel(most=2)) == {"a": pytest.approx(1.0)}


queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
definitions = st.builds(
    lambda number, asked: worked(f"tool_{number}", *asked),
    st.integers(0, 12),
    st.lists(queries, max_size=3),
)

some = st.lists(definitions, unique_by=lambda one: one.name, max_size=5)


@given(
    start=some,
    changes=st.lists(st.one_of(some, st.sampled_from(range(12))), max_size=6),
    query=queries,
)
def test_an_index_that_grew_answers_like_a_fresh_one(start, changes, query):
    """Additions, replacements and removals, tool by tool, leave no trace in the scores."""
    library = Library().with_tools(start)
    for change in changes:
        scores(library, query)  # so that each version is brought up to date from the one before
        library = (
            library.without([f"tool_{change}"])
            if isinstance(change, int)
            else library.with_tools(change)
        )
    grown = scores(library, query)
    assert grown == scores(Library(library.definitions), query)
    assert all(0 <= score <= 1 + 1e-6 for score in grown.values())


async def test_the_stage_lifts_and_drops_nothing():
    """Scores go up by the weight, and 1 for reliable examples, with a reason and a field."""
    library = Library([worked("convert", "ten dollars in euros"), worked("other")])
    left = await run(library, "ten dollars in euros", stage=Examples(weight=0.5))
    assert len(left) == 2
    (hit,) = left.hits
    assert (hit.definition.name, hit.reason) == ("convert", "worked for a request like this")
    assert hit.score == pytest.approx(1.5)  # nothing speaks against these examples yet
    assert hit.fields == {"examples": hit.score}


async def test_step_and_request_are_compared():
    """Examples of episodes hold whole requests, those that people write hold steps."""
    library = Library(
        [worked("convert", "ten dollars in euros, and the weather"), worked("b", "rain")]
    )
    goal = SubGoal(intent="will it rain")
    left = await run(library, "ten dollars in euros, and the weather", goal)
    assert {hit.definition.name for hit in left.hits} == {"convert", "b"}


async def test_a_tool_found_by_its_examples_alone_survives(define):
    """It shares no word with the request, but worked for one like it."""
    library = Library([worked("fx", "what do I get for my dollars"), define("get", "Get a thing.")])
    found = await CascadeRetriever().retrieve("what do I get for my dollars", library)
    assert found.hits[0].definition.name == "fx"


async def test_a_tool_called_by_name_still_wins(define):
    """However often another tool answered the very same request."""
    query = "use get_time for my dollars"
    library = Library([worked("fx", query), define("get_time", "The time.")])
    found = await CascadeRetriever().retrieve(query, library)
    assert found.hits[0].definition.name == "get_time"


def test_examples_that_do_not_predict_each_other_count_less():
    """Where users ask the same again p is near 1; where like requests want other tools, near 0."""
    again = [
        worked(f"tool_{n}", *(f"book seat {n}x{n} {m} now" for m in range(9))) for n in range(30)
    ]
    other = [worked(f"tool_{n}", f"book seat now {n}") for n in range(300)]
    config = IndexConfig(channels=(CHANNEL,))
    assert CHANNEL.reliability(Library(again).derived(config)) > 0.9
    assert CHANNEL.reliability(Library(other).derived(config)) < 0.2
    assert CHANNEL.reliability(Library([worked("a")]).derived(config)) == 1.0


async def test_very_many_tools_that_claim_a_request_do_not_push_out_the_one_it_describes(define):
    """What a stranger's catalogue says that its tools answered is shared among those that say it."""
    query = "Split a bill of 80 euros by four"
    claims = [
        worked(f"claim{at}", *[f"{query} c{at} {each}" for each in "xyz"]) for at in range(35)
    ]
    split = define("bill_split", "Split a bill by a number of people.")
    found = await CascadeRetriever().retrieve(query, Library([*claims, split]))
    assert found.hits[0].definition.name == "bill_split"
    one = await CascadeRetriever().retrieve(query, Library([claims[0], split]))
    assert one.hits[0].definition.name == "claim0", "one that worked is believed"


def test_a_card_has_parameters_result_and_first_sentence():
    """Optional parameters are three dots, a declared result has an arrow."""
    definition = ToolDefinition.from_schema(
        "loan.quote",
        "Quote a loan. Ask for the term first.",
        {
            "type": "object",
            "properties": {"amount": {"type": "number"}, "term": {"enum": [36, 48, 60]}},
            "required": ["amount"],
        },
        result={"type": "number"},
    )
    assert card(definition) == ("loan.quote(amount: number, ...) -> number  # Quote a loan.")


@pytest.mark.parametrize("result", [{"type": "object"}, {}])
def test_a_result_of_no_particular_type_is_left_out(result):
    """That something comes back needs no words."""
    assert card(ToolDefinition.from_schema("ping", "Ping.", {}, result=result)) == "ping()  # Ping."


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string|null"),
        ({"type": "array", "items": {"type": "integer"}}, "[integer]"),
        ({"type": "array"}, "[any]"),
        ({"type": ["array", "null"], "items": {"type": "integer"}}, "[integer]|null"),
        ({"enum": ["a", "b"]}, "a|b"),
        ({"enum": 5}, "any"),
        ({"type": ["string", "string"]}, "string"),
        ({"type": "integer", "enum": list(range(7))}, "integer"),
        ({"const": True}, "true"),
        ({"$ref": "#/$defs/Address"}, "Address"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}, "string|null"),
        ({}, "any"),
        (True, "any"),
        ({"enum": ["x" * 100]}, "x" * 59 + "\u2026"),
    ],
)
def test_types_in_a_word(schema, text):
    """A type is what a reader would write in a signature."""
    assert type_text(schema) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One."),
        ("Uses units, e.g. metres, i.e. SI. More.", "Uses units, e.g. metres, i.e. SI."),
        ("Version 2.0 of it. More", "Version 2.0 of it."),
        ("Really? Yes.", "Really?"),
        ("第一句。第二句。", "第一句。"),
        ("line one\n  line two", "line one line two"),
        ("x" * 200, "x" * 119 + "\u2026"),
        ("", ""),
    ],
)
def test_the_first_sentence(text, sentence):
    """Abbreviations and decimals do not end a sentence; long ones are cut."""
    assert first_sentence(text) == sentence


@given(
    name=st.text(min_size=1).filter(str.strip),
    summary=st.text(),
    parameter=st.text(min_size=1),
    option=st.text(),
)
def test_a_card_is_one_line(name, summary, parameter, option):
    """Whatever names and texts hold, a card cannot run into the next one."""
    schema = {"type": "object", "properties": {parameter: {"enum": [option, "b"]}}}
    shown = card(ToolDefinition.from_schema(name, summary, schema))
    assert len(shown.splitlines()) == 1


def test_read_only_mappings_are_shown_like_others():
    """A definition may hold frozen mappings; what is no JSON data is refused with its type."""
    frozen = MappingProxyType({"type": "string"})
    shown = schema_text(ToolDefinition.from_schema("one", "It.", {"properties": {"x": frozen}}))
    assert '"x":{"type":"string"}' in shown
    unread = Signature(parameters={"properties": {"x": {"enum": {1, 2}}}})
    wrong = ToolDefinition(name="one", signature=unread)
    with pytest.raises(TypeError, match="holds a set"):
        schema_text(wrong)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("天气", 2)]
)
def test_the_estimate_is_four_bytes_a_token(text, tokens):
    """Bytes of UTF-8 are counted, rounded up."""
    assert estimate_tokens(text) == tokens
