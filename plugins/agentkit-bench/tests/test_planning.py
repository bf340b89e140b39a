"""Tools as they are offered for a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import ToolDefinition
from agentkit.composites import RuleChecker
from agentkit.tools.coercion import coerce
from agentkit.tools.definition import Specification
from agentkit.tools.rules import Between, CallBefore, Form, OneOf
from agentkit.tools.validation import validate_arguments
from agentkit_bench.nestful_benchmark import MOST_FIELDS, plannable

TRIP = plannable(
    ToolDefinition.from_schema(
        "book_trip",
        "Book a trip.",
        {
            "type": "object",
            "properties": {
                "to": {"type": "string", "description": "The town."},
                "days": {"type": "integer", "description": "How many.", "default": 2},
                "class": {"type": "string", "enum": ["deck", "cabin"]},
                "guests": {"type": "array", "items": {"type": "integer"}},
                "from": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}},
                    "required": ["lat"],
                },
                "anything": {},
            },
            "required": ["to", "days"],
        },
        effects=None,
    ),
    ["booking.id", "price"],
)


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "Aker", "days": 3},
        {"to": "$var1.town$", "days": "$var2.days$"},
        {"to": "near $var1.town$", "days": "$var1$"},
        {"to": "Aker", "days": 1, "class": "$var1.offers[0].class$"},
        {"to": "Aker", "days": 1, "guests": "$var1.guests$"},
        {"to": "Aker", "days": 1, "guests": [1, "$var1.guests[1]$"]},
        {"to": "Aker", "days": 1, "from": {"lat": "$var3.where.lat$"}},
        {"to": "Aker", "days": 1, "from": "$var3.where$", "anything": "$var1$"},
    ],
    ids=str,
)
def test_references_stand_for_values_of_any_type(arguments):
    """A reference is taken wherever a value is, at any depth."""
    assert validate_arguments(TRIP, arguments) == ()


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "Aker"},
        {"to": "Aker", "days": "a few"},
        {"to": "Aker", "days": "$var"},
        {"to": "Aker", "days": "$varx.y$"},
        {"to": "Aker", "days": 1, "class": "balloon"},
        {"to": "Aker", "days": 1, "guests": [1.5]},
        {"to": "Aker", "days": 1, "from": {}},
        {"to": "Aker", "days": 1, "from": {"lat": "north"}},
    ],
    ids=str,
)
def test_all_else_is_as_strict_as_before(arguments):
    """A value that is neither of the declared type nor a reference is refused."""
    assert validate_arguments(TRIP, arguments)


def test_plain_values_are_still_coerced():
    """A number as text becomes the number, a reference stays as it is."""
    parameters = TRIP.signature.parameters
    given = {"to": "Aker", "days": "3", "class": " Deck"}
    assert coerce(given, parameters) == {"to": "Aker", "days": 3, "class": "deck"}
    assert coerce({"to": "A", "days": "$var1.n$"}, parameters)["days"] == "$var1.n$"
    assert coerce({"to": "Aker"}, parameters, fill="all").get("days") is None


def test_texts_and_defaults_stay_where_a_model_reads_them():
    """Descriptions of parameters are kept; the summary is followed by what the tool returns."""
    days = TRIP.parameters_schema["properties"]["days"]
    assert (days["description"], days["default"]) == ("How many.", 2)
    assert TRIP.parameters_schema["properties"]["to"] == {
        "type": "string",
        "description": "The town.",
    }
    assert TRIP.text == "Book a trip.\nReturns: booking.id, price."


def test_long_results_are_cut():
    """Only the first fields are told, and that there are more."""
    bare = ToolDefinition.from_schema("look", "Look.", {"type": "object", "properties": {}})
    text = plannable(bare, [f"f{number}" for number in range(MOST_FIELDS + 1)]).text
    assert text.endswith(f"f{MOST_FIELDS - 1} and more.")
    assert plannable(bare, []).text.endswith("Returns: a value.")


RULES = (
    OneOf(parameter="periods", values=(36, 48)),
    Form(parameter="start", format="date"),
    Between(parameter="lines[].count", minimum=1),
    CallBefore(tool="find_customer", parameter="customer"),
)


@pytest.fixture
def loan():
    """A tool with learned rules of several kinds."""
    line = {"type": "object", "properties": {"count": {"type": "integer"}}}
    definition = ToolDefinition.from_schema(
        "loan",
        "Quote a loan.",
        {
            "type": "object",
            "properties": {
                "periods": {"type": "integer"},
                "start": {"type": "string"},
                "customer": {"type": "string"},
                "lines": {"type": "array", "items": {"allOf": [line], "unevaluatedItems": True}},
            },
        },
    )
    return replace(definition, specification=Specification(rules=RULES))


def refused(definition, arguments):
    """Why the schema or a learned rule refuses a call."""
    problems = validate_arguments(definition, arguments)
    failure = RuleChecker(definition).refusal(arguments, [])
    return [*problems, *([failure] if failure else [])]


REFERRED = {
    "periods": "$var1.terms[0]$",
    "start": "$var1.start$",
    "customer": "$var2.id$",
    "lines": [{"count": "$var2.count$"}],
}


def test_learned_rules_take_references_in_a_plan(loan):
    """A reference stands for a value that a learned rule narrows, whatever the rule is."""
    assert refused(loan, {"periods": "$var1.terms[0]$"})
    assert refused(plannable(loan, []), REFERRED) == []


@pytest.mark.parametrize(
    "arguments",
    [{"periods": 40}, {"start": "soon"}, {"lines": [{"count": 0}]}],
    ids=str,
)
def test_learned_rules_hold_plain_values_in_a_plan(loan, arguments):
    """A value that is no reference is refused as the rule says."""
    assert refused(plannable(loan, []), arguments)


def test_a_model_still_reads_learned_rules_in_a_plan(loan):
    """Each sentence of a rule is told once, before what the tool returns."""
    planned = plannable(loan, ["id"])
    assert planned.specification.rules == ()
    assert planned.text.splitlines() == [*loan.text.splitlines(), "Returns: id."]
    assert plannable(planned, ["id"]) == planned


def test_a_planned_tool_that_learned_rules_is_plannable_again(loan):
    """Rules learned for the planned form, whose parameters take references, leave these open."""
    planned = plannable(replace(loan, specification=Specification()), ["id"])
    learned = replace(planned, specification=Specification(rules=RULES))
    again = plannable(learned, ["id"])
    assert refused(again, REFERRED) == []
    assert refused(again, {"periods": 40})
