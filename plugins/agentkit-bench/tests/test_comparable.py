"""The form in which calls are compared argument by argument."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit import ToolDefinition
from agentkit.messages import ToolCall
from agentkit.metrics import calls_equal
from agentkit_bench.comparable import by_name, comparable_call

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
INTRICATE = ToolDefinition.from_schema(
    "intricate",
    "References, alternatives and defaults in branches.",
    {
        "type": "object",
        "properties": {
            "text": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "n": {"$ref": "#/$defs/count"},
            "unit": {"type": ["string", "null"], "enum": ["km", None]},
        },
        "anyOf": [
            {"properties": {"x": {"type": "number", "default": 1.0}}, "required": ["n"]},
            {"properties": {"flag": {"default": True}}, "required": ["text"]},
        ],
        "$defs": {"count": {"type": "integer", "default": 3}},
    },
)
TOOLS = by_name([PLAIN, INTRICATE])
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
    st.sampled_from(["plain", "intricate", "unknown"]),
    st.dictionaries(NAMES, VALUES, max_size=4),
)


@given(one=CALLS, other=CALLS)
def test_it_says_the_same_as_canonical_equality(one, other):
    """Two calls are equal in this form exactly when they are canonically equal."""
    same = comparable_call(one, TOOLS).equals(comparable_call(other, TOOLS))
    assert same == calls_equal([one], [other], TOOLS.values())


def test_a_default_says_nothing():
    """An argument that equals its default has no mark, but counts as given."""
    call = ToolCall(call_id="1", name="plain", arguments={"text": "a", "n": "3"})
    compared = comparable_call(call, TOOLS)
    assert compared.marks == {"text": "a"}
    assert compared.given == {"text", "n"}
    assert compared.values == {"text": "a", "n": 3, "flag": False, "unit": "km"}


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "call",
    [
        ToolCall(call_id="1", name="plain", malformed="{"),
        ToolCall(call_id="1", name="plain", arguments={"free": nested(5_000)}),
        ToolCall(call_id="1", name="plain", arguments={"free": {1: 2}}),
        ToolCall(call_id="1", name="plain", arguments={"unit": object()}),
        ToolCall(call_id="1", name="plain", arguments={"unit": 10**5_000}),
        ToolCall(call_id="1", name="plain", arguments=["text"]),
        ToolCall(call_id="1", name="plain", arguments=None),
    ],
)
def test_what_is_no_object_of_arguments_equals_nothing(call):
    """Text that is no JSON, nesting beyond reason and keys that are no names give no exception."""
    compared = comparable_call(call, TOOLS)
    assert not compared.is_readable
    assert not compared.equals(compared)
