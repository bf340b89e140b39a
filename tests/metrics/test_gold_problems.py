"""Gold calls that nothing can match."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit import ToolDefinition
from agentkit.errors import UsageError
from agentkit.messages import ToolCall
from agentkit.metrics.allowed_values import (
    AllowedCall,
    GoldCalls,
    gold_problems,
    match_allowed_values,
)

FIND = ToolDefinition.from_schema(
    "find",
    "Find.",
    {
        "properties": {
            "town": {"type": "string"},
            "n": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "where": {"type": "object"},
        },
        "required": ["town"],
    },
)


def problems(**allowed):
    return [
        str(problem)
        for problem in gold_problems([AllowedCall(name="find", allowed=allowed)], [FIND])
    ]


@pytest.mark.parametrize(
    "allowed",
    [
        {"town": ["Moss"]},
        {"town": ["Moss", ""]},
        {"town": [""]},
        {"town": ["Moss"], "n": [3, ""], "tags": [["a"], ""], "where": [{"x": [1, ""]}]},
        {"town": ["Moss"], "n": ["a_variable"]},
        {"town": ["Moss"], "made_up": [""]},
        {"town": ["Moss"], "where": [{}]},
    ],
)
def test_gold_that_some_call_matches_has_none(allowed):
    """Whatever odd values it lists, as long as one set of arguments is right."""
    assert problems(**allowed) == []


@pytest.mark.parametrize(
    ("allowed", "reason"),
    [
        ({}, "allows no value for the argument 'town', which 'find' requires"),
        ({"town": []}, "allows no value for 'town' that 'find' could be given"),
        ({"town": ["x"], "n": []}, "allows no value for 'n' that 'find' could be given"),
        ({"town": ["x"], "extra": [1]}, "lists the argument 'extra', which 'find' does not take"),
        ({"town": "Moss"}, "has no list of allowed values for 'town' but 'Moss'"),
        ({"town": 5}, "has no list of allowed values for 'town' but 5"),
    ],
)
def test_gold_that_nothing_matches_is_told(allowed, reason):
    """Each reason names the argument and what is listed for it."""
    assert problems(**allowed) == [f"gold call 0 {reason}"]


def test_an_unknown_tool_and_gold_without_arguments_are_told():
    """The call is named by its place among the gold calls."""
    gold = [
        AllowedCall(name="find", allowed={"town": ["x"]}),
        AllowedCall(name="look", allowed={}),
        AllowedCall(name="find", allowed=["town"]),
    ]
    found = gold_problems(gold, [FIND])
    assert [(one.expected, one.tool, one.argument) for one in found] == [
        (1, "look", ""),
        (2, "find", ""),
    ]
    assert "lists no arguments by name but ['town']" in str(found[1])
    with pytest.raises(UsageError, match="gold call 2"):
        match_allowed_values([], gold, [FIND])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["town", "n", "tags", "where", "extra"])


@given(
    st.dictionaries(NAMES, JSON, max_size=4),
    st.dictionaries(NAMES, JSON | st.lists(JSON, max_size=3), max_size=4),
)
def test_any_data_give_a_value(arguments, allowed):
    """Neither what a model wrote nor what gold lists ends a batch with an exception."""
    gold = [AllowedCall(name="find", allowed=allowed)]
    found = gold_problems(gold, [FIND])
    assert all(str(problem) for problem in found)
    prepared = GoldCalls(gold, [FIND])
    if not prepared.unreadable:
        result = prepared.match([ToolCall(call_id="1", name="find", arguments=arguments)])
        assert result.passed != bool(result.unmatched)
        assert all(str(one) for missed in result.unmatched for one in missed.mismatches)
        assert not (result.passed and found)


def test_values_beyond_what_can_be_shown_are_findings():
    """An integer of thousands of digits, or a list of hundreds of levels, is a wrong value."""
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    gold = [AllowedCall(name="find", allowed={"town": ["x"], "n": [1], "tags": [["a"]]})]
    given = {"town": "x", "n": 10**5000, "tags": deep}
    result = match_allowed_values(
        [ToolCall(call_id="1", name="find", arguments=given)], gold, [FIND]
    )
    told = [str(one) for one in result.unmatched[0].mismatches]
    assert "argument 'n': wrong value, got int that is too large to be shown" in told[0]
    assert told[1].startswith("argument 'tags': wrong type")
