"""Verdicts by the flow of data, and calls in a form that can be compared."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given, strategies as st

from agentkit import ToolDefinition
from agentkit.episodes import Episode, Turn
from agentkit.evaluation import GoldCall
from agentkit.evaluation.verifiers import Scene, verifier_for
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.metrics import calls_equal
from agentkit_bench import DataFlow
from agentkit_bench.comparable import by_name, comparable_call

FIND = ToolDefinition.from_schema(
    "find", "Find a place.", {"type": "object", "properties": {"place": {"type": "string"}}}
)
BOATS = ToolDefinition.from_schema(
    "boats",
    "Boats between places.",
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
)
GOLD = (
    GoldCall(name="find", arguments={"place": "Aker"}),
    GoldCall(name="find", arguments={"place": "Moss"}),
    GoldCall(name="boats", arguments={"a": "$var1.id$", "b": "$var2.id$"}),
)


@pytest.fixture
def judge():
    """Judges an episode against the gold calls."""

    async def verdict(episode, **expected):
        expectation = DataFlow(**{"calls": GOLD, **expected})
        verifier = verifier_for(expectation, Scene(definitions=(FIND, BOATS)))
        return await verifier.verify(episode)

    return verdict


@pytest.fixture
def run(call):
    """An episode in which each call was run in a turn of its own, with these results."""

    def make(*steps, **fields):
        turns = [
            Turn(
                message=AssistantMessage(tool_calls=(call(name, **arguments),)),
                results=(ToolResult(call_id=name, name=name, status=status, value=value),),
            )
            for name, arguments, status, value in steps
        ]
        return Episode(episode_id="1", request="", turns=tuple(turns), **fields)

    return make


async def test_planned_calls_match_up_to_names_and_order(judge, episode, call):
    """The first two calls do not use each other, so they may change places."""
    made = episode(
        [
            call("find", "1", place="Moss"),
            call("find", "2", place="Aker"),
            call("boats", "3", a="$var2.id$", b="$var1.id$"),
        ]
    )
    verdict = await judge(made)
    assert (verdict.passed, verdict.score, verdict.verifier) == (True, 1.0, "data_flow")
    assert verdict.metrics["full_match"] == 1.0


async def test_executed_calls_are_judged_by_the_values(judge, run):
    """How the model came by a value does not matter, and failed calls are left out."""
    steps = [
        ("find", {"place": "Okker"}, "failed", None),
        ("find", {"place": "Aker"}, "ok", {"id": "AK"}),
        ("find", {"place": "Moss"}, "ok", {"id": "MO"}),
        ("boats", {"a": "AK", "b": "MO"}, "ok", [7]),
    ]
    assert (await judge(run(*steps))).passed
    steps[-1] = ("boats", {"a": "AK", "b": "AK"}, "ok", [7])
    verdict = await judge(run(*steps))
    assert [(one.kind, one.turn, one.parameter) for one in verdict.evidence] == [
        ("wrong_value", 3, "a"),
        ("wrong_value", 3, "b"),
    ]


@pytest.mark.parametrize(
    "calls",
    [
        (GoldCall(name="absent"),),
        (GoldCall(name="boats", arguments={"a": "$var2.id$"}),),
    ],
)
async def test_broken_gold_is_a_gold_error(judge, episode, calls):
    """Absent tools and references that lead nowhere say nothing about the agent."""
    assert (await judge(episode(answer="x"), calls=calls)).fault == "gold_error"


PLAIN = ToolDefinition.from_schema(
    "plain",
    "Only scalars, enums and lists.",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "n": {"type": "integer", "default": 3},
            "x": {"type": "number"},
            "flag": {"type": "boolean", "default": False},
            "unit": {"type": "string", "enum": ["km", "mile"], "default": "km"},
            "xs": {"type": "array", "items": {"type": "number"}},
            "free": {},
        },
        "required": ["text"],
    },
)
TOOLS = by_name([PLAIN])
VALUES = st.recursive(
    st.sampled_from(["", "a", "km", " KM ", "mile", "3", "3.0", "true", "[1, 2.0]", "null", "nan"])
    | st.sampled_from([0, 1, 3, 3.0, -0.0, 0.5, 2**53, 2.0**53, 1e300, 10**300, True, False, None])
    | st.just(float("nan")),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(st.sampled_from("ab"), inside),
    max_leaves=4,
)
NAMES = st.sampled_from(["text", "n", "x", "flag", "unit", "xs", "free", "other"])
CALLS = st.builds(
    lambda name, arguments: ToolCall(call_id="1", name=name, arguments=arguments),
    st.sampled_from(["plain", "unknown"]),
    st.dictionaries(NAMES, VALUES, max_size=4),
)


@given(one=CALLS, other=CALLS)
def test_it_says_the_same_as_canonical_equality(one, other):
    """Two calls are equal in this form exactly when they are canonically equal."""
    same = comparable_call(one, TOOLS).equals(comparable_call(other, TOOLS))
    assert same == calls_equal([one], [other], TOOLS.values())


@pytest.mark.parametrize(
    "call",
    [
        ToolCall(call_id="1", name="plain", malformed="{"),
        ToolCall(
            call_id="1", name="plain", arguments={"free": reduce(lambda a, _: [a], "a" * 200)}
        ),
        ToolCall(call_id="1", name="plain", arguments={"free": {1: 2}}),
        ToolCall(call_id="1", name="plain", arguments={"unit": object()}),
        ToolCall(call_id="1", name="plain", arguments={"unit": 10**5_000}),
        ToolCall(call_id="1", name="plain", arguments=["text"]),
    ],
)
def test_what_is_no_object_of_arguments_equals_nothing(call):
    """Text that is no JSON, nesting beyond reason and keys that are no names give no exception."""
    compared = comparable_call(call, TOOLS)
    assert not compared.is_readable
    assert not compared.equals(compared)
