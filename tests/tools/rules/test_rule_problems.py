"""What is wrong with a rule is said before anybody relies on it, whatever stands in its place."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from agentkit import Library, ToolDefinition
from agentkit.composites import rule_problems
from agentkit.errors import DefinitionError
from agentkit.testing import sample_library
from agentkit.tools import (
    Between,
    CallBefore,
    Condition,
    Example,
    Form,
    OneOf,
    Requires,
    Signature,
    Specification,
    rule_from_json,
    rule_to_json,
)

# --- rule_problems --------------------------------------------------------------------------------

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
    OneOf(parameter="anything", values=(None, True, "x", 1.5)),
    Between(parameter="nights", minimum=2, maximum=14, multiple_of=2, unit="nights"),
    Between(parameter="prices[]", minimum=0, multiple_of=0.01, unit="euros"),
    Form(parameter="city", pattern="[A-Z][a-z]{1,30}", words="a capitalised name", example="Oslo"),
    Requires(parameter="city", others=("nights",)),
    Condition(expression="nights < 10 or room == 'double'", words="long stays need a double room"),
    CallBefore(tool="weather_now", parameter="city"),
]
BAD: list[tuple[object, str]] = [
    (OneOf(parameter="nigths", values=(1,)), "unknown_parameter"),
    (OneOf(parameter="a.b", values=(1,)), "ambiguous_parameter"),
    (OneOf(parameter="nights", values=()), "empty_rule"),
    (OneOf(parameter="nights", values=(2, 2.0)), "repeated_values"),
    (OneOf(parameter="anything", values=tuple(range(65))), "too_many_values"),
    (OneOf(parameter="anything", values=(math.inf,)), "unusable_number"),
    (OneOf(parameter="nights", values=(2, 31)), "outside_contract"),
    (OneOf(parameter="nights", values=(5, 6)), "example_breaks_rule"),
    (Between(parameter="nights", minimum="3"), "malformed"),
    (Between(parameter="nights", minimum=9, maximum=3), "reversed_bounds"),
    (Between(parameter="nights", minimum=math.nan), "unusable_number"),
    (Between(parameter="nights", minimum=31), "contradiction"),
    (Between(parameter="city", minimum=1), "wrong_type"),
    (Form(parameter="city", format="postcode"), "format_unknown"),
    (Form(parameter="city", pattern="(?=a)a", words="w"), "pattern_unsafe"),
    (Form(parameter="city", pattern="[A-Z].{1,20}"), "no_words"),
    (Form(parameter="city", pattern="[A-Z].{1,20}", words="w", example="oslo"), "own_example"),
    (Form(parameter="room", pattern="[A-Z]{2}", words="w"), "contradiction"),
    (Requires(parameter="city", others=()), "empty_rule"),
    (Condition(expression="nights > 1", words=" "), "no_words"),
    (Condition(expression="nights >", words="w"), "expression_unreadable"),
    (Condition(expression="1 < 2", words="w"), "empty_rule"),
    (Condition(expression="nights > 2", words="w"), "example_breaks_rule"),
    (CallBefore(tool="no_such_tool"), "unknown_tool"),
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


@pytest.mark.parametrize(
    ("other", "rule"),
    [
        (OneOf(parameter="nights", values=(2, 4)), OneOf(parameter="nights", values=(1, 3))),
        (Between(parameter="nights", maximum=4), Between(parameter="nights", minimum=5)),
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


# --- what stands in the place of a rule -----------------------------------------------------------

# --- as JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [(), tuple(GOOD), (Between(parameter="x", maximum=2**60),)])
def test_rules_survive_json_text(rules) -> None:
    """A definition with rules is read back equal, with the same digest; it is of format 2."""
    definition = ToolDefinition(name="f", specification=Specification(rules=rules))
    record = definition.to_json()
    copy = ToolDefinition.from_json(json.loads(json.dumps(record)))
    assert copy == definition
    assert copy.digest == definition.digest
    assert copy.specification.rules == rules
    assert record["format"] == (2 if rules else 1)
    assert all(rule_from_json(rule_to_json(rule)) == rule for rule in rules)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("one_of", "a rule is an object"),
        ([{"kind": "magic"}], "no rule of kind 'magic'"),
        ([{"kind": "one_of"}], "missing"),
        ([{"kind": "one_of", "parameter": 3, "values": []}], "parameter of a rule .* is a text"),
        ([{"kind": "one_of", "parameter": "x", "values": "abc"}], "values .* is a list"),
        ([{"kind": "one_of", "parameter": "x", "values": [], "extra": 1}], "no part 'extra'"),
        ([{"kind": "between", "parameter": "x", "minimum": True}], "minimum .* is a number"),
        ([{"kind": "between", "parameter": "x", "maximum": math.inf}], "maximum .* is a number"),
    ],
)
def test_what_is_no_rule_is_refused(rules, message) -> None:
    """A record whose rules are of another shape is no definition, and the reason is given."""
    record = {"name": "f", "format": 2, "specification": {"rules": rules}}
    with pytest.raises(DefinitionError, match=message):
        ToolDefinition.from_json(record)
