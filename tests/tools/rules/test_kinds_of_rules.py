"""Each kind of rule: its sentence, what it refuses, and in which words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from agentkit import ToolDefinition
from agentkit.composites import RuleChecker, rule_problems
from agentkit.errors import DefinitionError
from agentkit.evolution.proposers.constraints import stated_ranges
from agentkit.evolution.proposers.observed import rule_of
from agentkit.models.grammar import grammar_schema
from agentkit.tools import (
    Between,
    CallBefore,
    Condition,
    EarlierCall,
    Form,
    OneOf,
    Requires,
    Signature,
    Specification,
    narrowed_schema,
    rule_from_json,
    rule_sentence,
    rule_to_json,
    validate_arguments,
)

# --- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (OneOf(parameter="periods", values=(36, 48, 60)), "periods must be one of 36, 48, 60."),
        (
            OneOf(parameter="x", values=("a", 1.5, True, None)),
            'x must be one of "a", 1.5, true, null.',
        ),
        (Between(parameter="n", maximum=9, unit="days"), "n must be at most 9, in days."),
        (
            Between(parameter="n", minimum=12, maximum=60, multiple_of=12, unit="months"),
            "n must be from 12 to 60 and a multiple of 12, in months.",
        ),
        (Between(parameter="n", unit="months"), "n is in months."),
        (
            Form(parameter="start", format="date"),
            "start must be a date (YYYY-MM-DD), such as 2026-05-31.",
        ),
        (
            Form(
                parameter="address.country",
                pattern="[A-Z]{2}",
                words="two capital letters",
                example="DE",
            ),
            "address.country must be two capital letters, such as DE.",
        ),
        (
            Requires(parameter="start", others=("end", "currency", "amount")),
            "When start is given, end, currency and amount must be given too.",
        ),
        (
            Condition(expression="start <= end", words="start must not be\n after end"),
            "start must not be after end.",
        ),
        (
            CallBefore(tool="find_customer", parameter="customer_id"),
            "Call find_customer first; customer_id comes from its result.",
        ),
    ],
)
def test_a_rule_in_words(rule, sentence) -> None:
    """Values are written as a call would write them, and words end as a sentence does."""
    assert rule_sentence(rule) == sentence


# --- refusals -------------------------------------------------------------------------------------

PERIODS = OneOf(parameter="periods", values=(36, 48, 60))


def test_the_failure_says_all_that_a_model_needs(loan_with) -> None:
    """Sentence with the offending value, path, schema and nearest values, under a typed kind."""
    failure = RuleChecker(loan_with(PERIODS)).refusal({"amount": 1, "periods": 50})
    assert failure is not None
    assert failure.kind == "contract_violated"
    assert failure.cause == "one_of"
    assert failure.rule == "`periods` must be one of 36, 48, 60, got the number 50"
    assert failure.path == "periods"
    assert failure.schema_excerpt == {
        "type": "integer",
        "description": "How long.",
        "enum": [36, 48, 60],
    }
    assert failure.nearest == ("48", "60", "36")
    assert failure.retryable


@pytest.mark.parametrize(
    ("rule", "arguments", "sentence", "nearest"),
    [
        (
            Between(parameter="periods", minimum=12, maximum=60, multiple_of=12),
            {"periods": 40},
            "`periods` must be from 12 to 60 and a multiple of 12, got the number 40",
            ("36", "48"),
        ),
        (
            Form(parameter="start", format="date"),
            {"start": "2024-02-30"},
            (
                "`start` must be a date (YYYY-MM-DD), such as 2026-05-31, "
                "got the string '2024-02-30'"
            ),
            ("2026-05-31",),
        ),
        (
            Form(parameter="address.country", pattern="[A-Z]{2}", words="two capitals", example="DE"),
            {"address": {"country": "DEU"}},
            "`address.country` must be two capitals, such as DE, got the string 'DEU'",
            ("DE",),
        ),
        (
            OneOf(parameter="items[].sku", values=("A1", "B2")),
            {"items": [{"sku": "A1"}, {}, {"sku": "a"}]},
            "`items[2].sku` must be one of \"A1\", \"B2\", got the string 'a'",
            ("A1",),
        ),
        (
            Requires(parameter="start", others=("end",)),
            {"start": "2024-01-01"},
            "`end` must be given too when `start` is given",
            (),
        ),
        (
            Condition(expression="start <= end", words="start must not be after end."),
            {"start": "b", "end": "a"},
            "start must not be after end, got start = 'b' and end = 'a'",
            (),
        ),
    ],
)  # fmt: skip
def test_each_kind_of_rule(loan_with, rule, arguments, sentence, nearest) -> None:
    """The sentence names the place, the demand and the value; allowed values come best first."""
    failure = RuleChecker(loan_with(rule)).refusal(arguments)
    assert failure is not None
    assert (failure.rule, failure.nearest, failure.cause) == (sentence, nearest, rule.kind)


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        (PERIODS, {"periods": 36.0}),
        (Between(parameter="amount", multiple_of=0.01), {"amount": 19.99}),
        (Between(parameter="amount", multiple_of=math.nan), {"amount": 3}),
        (Form(parameter="start", pattern="(?=a)b", words="w"), {"start": "a" * 5_000}),
        (Form(parameter="start", pattern="(?i)b", words="w"), {"start": "a"}),
        (Requires(parameter="start", others=("end",)), {"end": "x"}),
        (Condition(expression="start <= end", words="w"), {"start": "b"}),
        (Condition(expression="import os", words="w"), {"amount": 1}),
        (OneOf(parameter="unheard_of", values=(1,)), {"unheard_of": 2}),
        (CallBefore(tool="log_in"), {}),
    ],
)  # fmt: skip
def test_what_a_rule_can_not_judge_it_does_not_refuse(loan_with, rule, arguments) -> None:
    """Values of other types, rules that make no sense and things that are not known pass."""
    assert RuleChecker(loan_with(rule)).refusal(arguments) is None


@pytest.mark.parametrize(
    ("text", "value", "passes"),
    [
        ('{"id":"C-17","name":"Ada"}', "C-17", True),
        ('{"id":"C-17"}', "C-18", False),
        ('{"id":117}', 17, False),
        ('{"said":"a \\"b\\" c"}', 'a "b" c', True),
        ('[{"id":1},{"id":2}]', [1, 3], False),
        ("x" * 300_000, "not there", True),
        ("anything", None, True),
    ],
)
def test_a_value_comes_from_an_earlier_result(text, value, passes) -> None:
    """A value that is found in no result of the other tool is refused; a doubt is no reason."""
    order = ToolDefinition(
        name="order",
        signature=Signature(parameters={"properties": {"customer": {}}}),
        specification=Specification(
            rules=(CallBefore(tool="find_customer", parameter="customer"),)
        ),
    )
    earlier = [EarlierCall(name="find_customer", text=text)]
    failure = RuleChecker(order).refusal({"customer": value}, earlier)
    assert (failure is None) == passes


# --- bounds that are themselves not allowed -------------------------------------------------------

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


@pytest.mark.parametrize(
    ("rule", "value", "near"),
    [
        ({"exclusive_minimum": 0}, 0, ("1",)),
        ({"exclusive_minimum": 0, "exclusive_maximum": 1}, 0, ()),
        ({"exclusive_maximum": 10, "multiple_of": 5}, 12, ("5",)),
    ],
)
def test_the_refusal_names_a_number_that_is_allowed(rule, value, near):
    """Beside a bound that is left out the next whole number or multiple is told, if there is one."""
    failure = RuleChecker(ruled(Between(parameter="n", **rule))).refusal({"n": value})
    assert failure.nearest == near


# --- lengths and counts ---------------------------------------------------------------------------

TITLE = Between(parameter="title", measure="length", minimum=2, maximum=5)
TAGS = Between(parameter="tags", measure="items", maximum=2)
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 80},
        "tags": {"type": "array", "items": {"type": "string"}},
        "year": {"type": "integer"},
    },
}


def note(*rules):
    """A tool that holds these rules."""
    return ToolDefinition(
        name="note",
        signature=ToolDefinition.from_schema("note", "", SCHEMA).signature,
        specification=Specification(rules=rules),
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"title": "sechse"}, "`title` must have from 2 to 5 characters, got the string 'sechse'"),
        ({"tags": ["a", "b", "c"]}, "`tags` must have at most 2 items, got"),
    ],
)
def test_calls_are_held_to_it(arguments, said):
    """The checker refuses a call in the words of the rule, as the narrowed schema does."""
    failure = RuleChecker(note(TITLE, TAGS)).refusal(arguments)
    assert failure.rule.startswith(said)
    assert failure.cause == "between"
    narrowed = ToolDefinition.from_schema("note", "", narrowed_schema(SCHEMA, [TITLE, TAGS]))
    assert validate_arguments(narrowed, arguments)


def test_it_is_written_and_read():
    """The measure is a part of the record, and older readers are told that they cannot read it."""
    assert rule_from_json(rule_to_json(TITLE)) == TITLE
    record = note(TITLE).to_json()
    assert (record["format"], note(OneOf(parameter="year", values=(1,))).to_json()["format"]) == (
        3,
        2,
    )
    assert ToolDefinition.from_json(record) == note(TITLE)
    with pytest.raises(DefinitionError, match="upgrade"):
        ToolDefinition.from_json({**record, "format": 4})
