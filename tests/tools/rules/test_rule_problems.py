"""What is wrong with a rule is said before anybody relies on it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.composites import rule_problems
from agentkit.composites.rule_validity import RuleProblemCode
from agentkit.library.library import Library
from agentkit.testing import sample_library
from agentkit.tools import Example, Signature, Specification, ToolDefinition
from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
)

TOOL = ToolDefinition(
    name="book",
    signature=Signature(
        parameters={
            "type": "object",
            "properties": {
                "nights": {"type": "integer", "minimum": 1, "maximum": 30},
                "room": {"enum": ["single", "double"]},
                "city": {"type": "string"},
                "guest": {"anyOf": [{"$ref": "#/$defs/Guest"}, {"type": "null"}]},
                "prices": {"type": "array", "items": {"type": "number"}},
                "a.b": {},
                "a": {"properties": {"b": {}}},
                "anything": True,
            },
            "$defs": {"Guest": {"type": "object", "properties": {"age": {"$ref": "#/$defs/Age"}}}, "Age": {"type": "integer"}},
        }
    ),
    examples=(
        Example(arguments={"nights": 2, "city": "Bergen"}, result="ok"),
        Example(arguments={"nights": 3, "city": "3"}, is_whole=False),
    ),
)  # fmt: skip

GOOD = [
    OneOf(parameter="nights", values=(1, 2, 7)),
    OneOf(parameter="room", values=("single",)),
    OneOf(parameter="guest.age", values=(1, 2)),
    OneOf(parameter="anything", values=(None, True, "x", 1.5)),
    Between(parameter="nights", minimum=2, maximum=14, multiple_of=2, unit="nights"),
    Between(parameter="prices[]", minimum=0, multiple_of=0.01, unit="euros"),
    Between(parameter="anything", unit="metres"),
    Form(parameter="city", pattern="[A-Z][a-z]{1,30}", words="a capitalised name", example="Oslo"),
    Form(parameter="anything", format="date"),
    Requires(parameter="city", others=("nights",)),
    Condition(expression="nights < 10 or room == 'double'", words="long stays need a double room"),
    CallBefore(tool="weather_now"),
    CallBefore(tool="weather_now", parameter="city"),
]
BAD: list[tuple[object, RuleProblemCode]] = [
    (OneOf(parameter="nigths", values=(1,)), "unknown_parameter"),
    (OneOf(parameter="guest.name", values=(1,)), "unknown_parameter"),
    (OneOf(parameter="city[]", values=("x",)), "unknown_parameter"),
    (OneOf(parameter="", values=("x",)), "unknown_parameter"),
    (OneOf(parameter="a.b", values=(1,)), "ambiguous_parameter"),
    (OneOf(parameter="nights", values=()), "empty_rule"),
    (OneOf(parameter="nights", values=(2, 2.0)), "repeated_values"),
    (OneOf(parameter="anything", values=tuple(range(65))), "too_many_values"),
    (OneOf(parameter="anything", values=(math.inf,)), "unusable_number"),
    (OneOf(parameter="nights", values=(2, "two")), "outside_contract"),
    (OneOf(parameter="nights", values=(2, 31)), "outside_contract"),
    (OneOf(parameter="room", values=("single", "suite")), "outside_contract"),
    (OneOf(parameter="nights", values=(5, 6)), "example_breaks_rule"),
    (Between(parameter="nights"), "empty_rule"),
    (Between(parameter="nights", minimum="3"), "malformed"),
    ("nights >= 3", "malformed"),
    (Between(parameter="nights", minimum=9, maximum=3), "reversed_bounds"),
    (Between(parameter="nights", minimum=math.nan), "unusable_number"),
    (Between(parameter="nights", multiple_of=0), "unusable_number"),
    (Between(parameter="nights", minimum=31), "contradiction"),
    (Between(parameter="nights", minimum=29.2, maximum=29.8), "contradiction"),
    (Between(parameter="nights", multiple_of=31), "contradiction"),
    (Between(parameter="prices[]", minimum=1.01, maximum=1.09, multiple_of=0.1), "contradiction"),
    (Between(parameter="city", minimum=1), "wrong_type"),
    (Between(parameter="room", minimum=1), "wrong_type"),
    (Between(parameter="nights", minimum=3), "example_breaks_rule"),
    (Form(parameter="nights", format="date"), "wrong_type"),
    (Form(parameter="guest", format="date"), "wrong_type"),
    (Form(parameter="city"), "empty_rule"),
    (Form(parameter="city", pattern="a", format="date", words="w"), "empty_rule"),
    (Form(parameter="city", format="postcode"), "format_unknown"),
    (Form(parameter="city", pattern="(?=a)a", words="w"), "pattern_unsafe"),
    (Form(parameter="city", pattern="[A-Z].{1,20}"), "no_words"),
    (Form(parameter="city", pattern="[A-Z].{1,20}", words="w", example="oslo"), "own_example"),
    (Form(parameter="room", pattern="[A-Z]{2}", words="w"), "contradiction"),
    (Form(parameter="city", format="uuid"), "example_breaks_rule"),
    (Requires(parameter="city", others=()), "empty_rule"),
    (Requires(parameter="city", others=("city",)), "empty_rule"),
    (Requires(parameter="city", others=("room", "rooms")), "unknown_parameter"),
    (Requires(parameter="city", others=("room",)), "example_breaks_rule"),
    (Condition(expression="nights > 1", words=" "), "no_words"),
    (Condition(expression="nights >", words="w"), "expression_unreadable"),
    (Condition(expression="open('x')", words="w"), "expression_unreadable"),
    (Condition(expression="rooms > 1", words="w"), "expression_unreadable"),
    (Condition(expression="1 < 2", words="w"), "empty_rule"),
    (Condition(expression="nights > 2", words="w"), "example_breaks_rule"),
    (CallBefore(tool="no_such_tool"), "unknown_tool"),
    (CallBefore(tool="book"), "empty_rule"),
    (CallBefore(tool="weather_now", parameter="town"), "unknown_parameter"),
]


@pytest.fixture(scope="module")
def library() -> Library:
    """A library with a tool named ``weather_now``."""
    return sample_library()


@pytest.mark.parametrize("rule", GOOD, ids=str)
def test_a_good_rule_has_no_problem(rule, library) -> None:
    """What narrows the contract, and lets the worked examples pass, is fine."""
    assert rule_problems(rule, TOOL, library) == ()


@pytest.mark.parametrize(("rule", "code"), BAD, ids=str)
def test_a_bad_rule_has_a_reason(rule, code, library) -> None:
    """Each problem has a code, a sentence with what is wrong, and a way out."""
    problems = rule_problems(rule, TOOL, library)
    assert [problem.code for problem in problems] == [code]
    assert all(problem.message and problem.advice for problem in problems)


def test_every_code_has_an_example() -> None:
    """No code is promised that no rule can have."""
    assert {code for _, code in BAD} == set(get_args(RuleProblemCode))


@pytest.mark.parametrize(
    ("other", "rule"),
    [
        (OneOf(parameter="nights", values=(2, 4)), OneOf(parameter="nights", values=(1, 3))),
        (OneOf(parameter="nights", values=(2, 4)), Between(parameter="nights", minimum=5)),
        (Between(parameter="nights", maximum=4), Between(parameter="nights", minimum=5)),
        (
            Between(parameter="nights", multiple_of=4, maximum=11),
            Between(parameter="nights", multiple_of=3),
        ),
    ],
)
def test_rules_of_one_tool_must_leave_something(other, rule) -> None:
    """A rule is held against those that the tool has; with itself it does not collide."""
    bare = replace(TOOL, examples=())
    ruled = replace(bare, specification=Specification(rules=(other,)))
    both = replace(bare, specification=Specification(rules=(other, rule)))
    assert [problem.code for problem in rule_problems(rule, ruled)] == ["contradiction"]
    assert [problem.code for problem in rule_problems(other, both)] == ["contradiction"]
    assert rule_problems(rule, bare) == rule_problems(other, ruled) == ()


def test_a_path_that_could_be_followed_for_ever_is_not() -> None:
    """Alternatives that multiply at each step of a path, or of a type, are followed so far only."""
    node = {"anyOf": [{"properties": {"a": {"$ref": "#/$defs/Node"}}}] * 8}
    loop = {"anyOf": [{"$ref": "#/$defs/Loop"}] * 8}
    parameters = {"properties": {"a": {"$ref": "#/$defs/Node"}, "b": {"$ref": "#/$defs/Loop"}}}
    definition = ToolDefinition(
        name="f",
        signature=Signature(parameters={**parameters, "$defs": {"Node": node, "Loop": loop}}),
    )
    assert rule_problems(OneOf(parameter=".".join("a" * 60), values=(1,)), definition) == ()
    assert rule_problems(Between(parameter="b", minimum=1), definition) == ()


JUNK = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text("a.[]$(*", max_size=4)
SCHEMAS = st.recursive(
    JUNK,
    lambda inner: st.dictionaries(
        st.sampled_from(
            ["type", "properties", "items", "enum", "anyOf", "allOf", "$ref", "minimum", "a",
             "multipleOf", "dependentRequired", "required", "const"]
        ),
        inner | st.lists(inner, max_size=2),
        max_size=4,
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["a", "a.b"]), SCHEMAS, max_size=2),
    st.sampled_from(["a", "a.b", "a[].b", "", "[]", "."]),
    st.lists(JUNK, max_size=2).map(tuple),
    st.floats() | st.none(),
)
def test_no_contract_and_no_rule_is_too_strange(properties, parameter, values, number) -> None:
    """Whatever stands in the contract or in the rule, the answer is a value, not an exception."""
    definition = ToolDefinition(
        name="f",
        signature=Signature(parameters={"properties": properties}),
        examples=(Example(arguments={"a": 1}, result=1),),
    )
    for rule in (
        OneOf(parameter=parameter, values=values),
        Between(parameter=parameter, minimum=number, multiple_of=number),
        Form(parameter=parameter, pattern=parameter, words="w"),
        Requires(parameter=parameter, others=("a",)),
    ):
        rule_problems(rule, definition)
        ruled = replace(definition, specification=Specification(rules=(rule,)))
        assert isinstance(ruled.parameters_schema, dict)
        assert ruled.text
