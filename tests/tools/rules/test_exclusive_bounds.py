"""Ranges whose bounds are themselves not allowed: "must be more than 0"."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from agentkit import ToolDefinition
from agentkit.composites import RuleChecker, rule_problems
from agentkit.evolution.proposers.constraints import stated_ranges
from agentkit.evolution.proposers.observed import rule_of
from agentkit.models.grammar import grammar_schema
from agentkit.tools.definition import Example, Specification
from agentkit.tools.rules import (
    Between,
    narrowed_schema,
    rule_from_json,
    rule_sentence,
    rule_to_json,
)

BOUNDS = st.none() | st.sampled_from([-5, -1, -0.5, 0, 0.1, 1, 2, 2.5, 7])
RANGES = st.builds(
    Between,
    parameter=st.just("n"),
    minimum=BOUNDS,
    maximum=BOUNDS,
    exclusive_minimum=BOUNDS,
    exclusive_maximum=BOUNDS,
)
EDGES = (-5, -1, -0.5, 0, 0.1, 1, 2, 2.5, 7)
VALUES = (*EDGES, *(edge + step for edge in EDGES for step in (-0.01, 0.01)), -99, 99, 3, 4)


def tool(kind, **more):
    """A tool with one number."""
    schema = {"type": "object", "properties": {"n": {"type": kind, **more}}, "required": ["n"]}
    return ToolDefinition.from_schema("f", "", schema)


def ruled(rule, kind="number", **more):
    """The tool with a rule."""
    return replace(tool(kind, **more), specification=Specification(rules=(rule,)))


def refuses(rule, value):
    """Whether the executor refuses a value."""
    return RuleChecker(ruled(rule)).refusal({"n": value}) is not None


def accepts(schema, value):
    """What the reference implementation of JSON Schema says."""
    return Draft202012Validator(schema).is_valid({"n": value})


def read_back(rule, definition):
    """The parts of a rule as its own sentence states them."""
    sentence = rule_sentence(rule)
    return [rule_of(stated, "n", definition) for stated in stated_ranges(sentence)]


@given(RANGES, st.sampled_from(["number", "integer"]))
def test_all_that_is_derived_of_a_range_agrees_on_every_value(rule, kind):
    """Schema, refusal and the sentence read back accept the same numbers; the grammar no others."""
    definition = ruled(rule, kind)
    narrowed = definition.parameters_schema
    grammar = grammar_schema(narrowed)
    is_sound = not rule_problems(rule, tool(kind))
    told = read_back(rule, tool(kind)) if is_sound else []
    for value in VALUES:
        if kind == "integer" and value % 1:
            continue
        allowed = not refuses(rule, value)
        assert accepts(narrowed, value) == allowed
        assert not is_sound or all(not refuses(one, value) for one in told) == allowed
        assert (grammar is not None and accepts(grammar, value)) == allowed


@given(RANGES, RANGES)
def test_the_contract_is_never_widened(contract, rule):
    """A rule on top of a range of the contract takes values away and adds none."""
    of_contract = narrowed_schema(tool("number").signature.parameters, [contract])
    narrowed = narrowed_schema(of_contract, [rule])
    for value in VALUES:
        both = not refuses(contract, value) and not refuses(rule, value)
        assert accepts(narrowed, value) == both


@given(RANGES)
def test_a_rule_that_leaves_no_value_is_a_problem(rule):
    """A range that nothing is in is told; one that something is in is not."""
    codes = {one.code for one in rule_problems(rule, tool("number"))}
    if any(not refuses(rule, value) for value in VALUES):
        assert not codes & {"contradiction", "reversed_bounds"}
    else:
        assert codes


@given(RANGES)
def test_it_survives_json(rule):
    """What is written is read back."""
    assert rule_from_json(rule_to_json(rule)) == rule


def test_rules_without_open_bounds_are_written_as_before():
    """Their JSON, and so the digest of the definition, has no new part."""
    rule = Between(parameter="n", minimum=0, maximum=5)
    assert rule_to_json(rule) == {
        "kind": "between",
        "parameter": "n",
        "minimum": 0,
        "maximum": 5,
    }
    assert rule_sentence(rule) == "n must be from 0 to 5."


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"exclusive_minimum": 0}, "n must be more than 0."),
        ({"exclusive_maximum": 1.5, "unit": "km"}, "n must be less than 1.5, in km."),
        ({"exclusive_minimum": 0, "maximum": 1}, "n must be more than 0 and at most 1."),
        ({"minimum": 1, "exclusive_maximum": 5}, "n must be at least 1 and less than 5."),
        (
            {"exclusive_minimum": 0, "multiple_of": 5},
            "n must be more than 0 and a multiple of 5.",
        ),
    ],
)
def test_the_sentence_says_that_the_bound_is_left_out(rule, sentence):
    """More and less than leave a bound out, at least and at most take it in."""
    assert rule_sentence(Between(parameter="n", **rule)) == sentence


@pytest.mark.parametrize(
    ("rule", "value", "near"),
    [
        ({"exclusive_minimum": 0}, 0, ("1",)),
        ({"exclusive_minimum": 0}, -7.5, ("1",)),
        ({"exclusive_maximum": 10}, 12, ("9",)),
        ({"exclusive_minimum": 0, "exclusive_maximum": 1}, 0, ()),
        ({"exclusive_maximum": 10, "multiple_of": 5}, 12, ("5",)),
        ({"exclusive_minimum": 10, "multiple_of": 5}, 8, ("15",)),
        ({"minimum": 1, "exclusive_maximum": 9}, -3, ("1",)),
    ],
)
def test_the_refusal_names_a_number_that_is_allowed(rule, value, near):
    """Beside a bound that is left out the next whole number or multiple is told, if there is one."""
    failure = RuleChecker(ruled(Between(parameter="n", **rule))).refusal({"n": value})
    assert failure.nearest == near


def test_a_bound_of_an_older_dialect_is_not_taken_for_the_number_one():
    """Draft 4 wrote true beside the bound; a rule that leaves out 1 is added beside it."""
    schema = {"properties": {"n": {"minimum": 0, "exclusiveMinimum": True}}}
    narrowed = narrowed_schema(schema, [Between(parameter="n", exclusive_minimum=1)])
    assert narrowed["properties"]["n"]["allOf"] == [{"exclusiveMinimum": 1}]


def test_an_example_at_the_bound_speaks_against_the_rule():
    """A call that went well forbids a rule that leaves its value out."""
    definition = replace(tool("number"), examples=(Example(arguments={"n": 0}, result=1),))
    codes = [
        [one.code for one in rule_problems(Between(parameter="n", **rule), definition)]
        for rule in ({"exclusive_minimum": 0}, {"minimum": 0})
    ]
    assert codes == [["example_breaks_rule"], []]
