"""Gold calls are read as data."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st

from agentkit.evaluation import GoldCall
from agentkit.tools import ToolDefinition
from agentkit_bench.bfcl_multi_turn import UnreadableGoldError, parse_gold

NAMES = ("first", "second", "third")
TOOL = ToolDefinition.from_schema(
    "act", "", {"type": "object", "properties": {name: {} for name in NAMES}}
)
TOOLS = {"act": TOOL}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_what_python_writes_is_read_back(arguments):
    """Any JSON arguments, written as a Python call, come back as they were."""
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    assert parse_gold(f"act({written})", TOOLS) == GoldCall(name="act", arguments=arguments)


@given(st.text(max_size=60))
def test_any_text_is_a_call_or_refused(text):
    """Whatever a gold text is, reading it gives a call of the tool or the one error."""
    with contextlib.suppress(UnreadableGoldError):
        assert parse_gold(text, TOOLS).name == "act"


def test_arguments_without_names_go_by_position():
    """They take the names of the parameters in order."""
    assert parse_gold("act(1, (2, 3), third=None)", TOOLS).arguments == {
        "first": 1,
        "second": [2, 3],
        "third": None,
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("act(1, first=2)", "gives 'first' twice"),
        ("act(fourth=1)", "has no such parameter"),
        ("act(**{'first': 1})", "has no such parameter"),
        ("act(1, 2, 3, 4)", "has 4 arguments"),
        ("act(first={1, 2})", "JSON has no set"),
        ("act(first={1: 2})", "JSON has no dict"),
        ("act(first=1j)", "JSON has no complex"),
        ("act(first=act())", "no plain value"),
        ("world.act(first=1)", "no simulator has"),
        ("act", "is not a call"),
        ("act(first=" + "-" * 100_000 + "1)", "is no Python"),
        ("act(first='\0')", "is no Python"),
    ],
)
def test_what_is_no_call_of_the_tool_is_refused(text, reason):
    """The reason says what is wrong with it."""
    with pytest.raises(UnreadableGoldError, match=reason):
        parse_gold(text, TOOLS)
