"""What stands in the place of a rule may be anything: a problem is told, and nothing is raised."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.composites import RuleChecker, rule_problems
from agentkit.tools.definition import Example, Specification
from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
)

HUGE = 10**400
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from([HUGE, -HUGE, "n", "s", "l[]", "o.x", "\ud800", "n > 1", "(" * 60, "date"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)
PARTS = {
    OneOf: ("parameter", "values"),
    Between: (
        "parameter",
        "minimum",
        "maximum",
        "exclusive_minimum",
        "exclusive_maximum",
        "multiple_of",
        "unit",
    ),
    Form: ("parameter", "pattern", "format", "words", "example"),
    Requires: ("parameter", "others"),
    Condition: ("expression", "words"),
    CallBefore: ("tool", "parameter"),
}


@st.composite
def anything(draw):
    """A rule whose parts are any JSON, or something that is no rule."""
    kind = draw(st.sampled_from([*PARTS, None]))
    if kind is None:
        return draw(JSON)
    return kind(**{name: draw(JSON) for name in PARTS[kind]})


@pytest.fixture(scope="module")
def tool():
    """A tool with parameters of several types and a worked call."""
    definition = ToolDefinition.from_schema(
        "f",
        "",
        {
            "type": "object",
            "properties": {
                "n": {"type": "number"},
                "s": {"type": "string"},
                "l": {"type": "array", "items": {"type": "integer"}},
                "o": {"type": "object", "properties": {"x": {}}},
            },
        },
    )
    return replace(definition, examples=(Example(arguments={"n": HUGE, "s": "a", "l": [1]}),))


@settings(max_examples=200, deadline=None)
@given(rule=anything(), others=st.lists(anything(), max_size=2))
def test_any_json_gives_problems(tool, rule, others):
    """A rule with no problems can be relied on: what is derived of it can be made."""
    beside = replace(tool, specification=Specification(rules=tuple(others)))
    problems = rule_problems(rule, beside, ["f", "g"])
    assert all(one.message and one.advice for one in problems)
    if not problems:
        ruled = replace(tool, specification=Specification(rules=(rule,)))
        assert RuleChecker(ruled).refusal(tool.examples[0].arguments) is None
        assert ruled.parameters_schema
        assert ruled.text
        assert ruled.digest


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("periods in (36, 48)", "'periods in (36, 48)' is no rule"),
        (None, "None is no rule"),
        (OneOf(parameter="n", values=[1, 2]), "its values is [1, 2], not a list of values"),
        (Between(parameter="n", minimum="1"), "its minimum is '1', not a number"),
        (
            Between(parameter="n", exclusive_maximum=True),
            "its exclusive_maximum is True, not a num",
        ),
        (Form(parameter=7, format="date"), "its parameter is 7, not a text"),
        (Requires(parameter="n", others=(1,)), "its others is (1,), not a list of texts"),
        (Condition(expression=["n"], words=""), "its expression is ['n'], not a text"),
        (CallBefore(tool=None), "its tool is None, not a text"),
        (OneOf(parameter="s", values=("\ud800",)), "its values is ('\\ud800',), not a list of"),
        (Between(parameter="n", unit=10**5000), "its unit is a value with very many digits, not"),
    ],
)
def test_the_part_that_is_wrong_is_told(tool, rule, message):
    """Which part it is, what stands there, and what should."""
    [problem] = rule_problems(rule, tool)
    assert problem.code == "malformed"
    assert problem.message.startswith(message)


def test_a_bound_that_no_float_holds_is_a_bound(tool):
    """An integer of 400 digits can be compared with: by the checker and in the schema."""
    rule = Between(parameter="n", maximum=HUGE, multiple_of=0.5)
    assert rule_problems(rule, tool) == ()
    ruled = replace(tool, specification=Specification(rules=(rule,)))
    assert ruled.parameters_schema["properties"]["n"]["maximum"] == HUGE
    assert RuleChecker(ruled).refusal({"n": HUGE + 1}).nearest == (str(HUGE),)
    assert RuleChecker(ruled).refusal({"n": float("inf")}) is not None
