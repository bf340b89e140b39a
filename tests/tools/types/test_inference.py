"""What schemas declare, and what names, texts, enums and values tell."""

from __future__ import annotations

import pytest

from agentkit import ToolDefinition
from agentkit.tools import (
    ANY,
    Description,
    Example,
    Signature,
    TypeSet,
    declared_type,
    named_type,
    signature_types,
    slot_of_value,
    type_of,
    type_of_value,
)

# --- declared types -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": ["integer", "null"]}, "integer | null"),
        ({"type": "string", "format": "date-time"}, "string datetime"),
        ({"enum": ["a", "b"]}, 'string in {"a", "b"}'),
        ({"type": "number", "enum": [1, 2.5]}, "integer in {1} | number in {2.5}"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "integer | string"),
        ({"type": "array", "items": {"type": "number"}}, "array of (number)"),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, "object with a"),
    ],
)
def test_a_schema_is_read(schema, words):
    """Types, unions, lists, objects, enums and formats become types."""
    assert str(declared_type(schema)) == words


@pytest.mark.parametrize(
    "schema",
    [{}, True, None, "string", {"type": "any"}, {"type": ["string", "tuple"]}, {"$ref": "#/nope"}],
)
def test_what_is_not_declared_is_anything(schema):
    """No type, an unknown one, or something that is no schema declares nothing."""
    assert declared_type(schema) is ANY or declared_type(schema) == ANY


def test_references_that_multiply_end_soon():
    """Twenty doublings would be a million parts; only the first few hundred are read."""
    levels = {f"n{i}": {"anyOf": [{"$ref": f"#/$defs/n{i + 1}"}] * 2} for i in range(20)}
    schema = {"$defs": {**levels, "n20": {"type": "string"}}, "$ref": "#/$defs/n0"}
    assert declared_type(schema) == ANY


def test_results_have_all_their_fields_and_inputs_those_required():
    """A tool gives what it declares; a caller need not give what is optional."""
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    assert str(declared_type(schema)) == "object with a"
    assert str(declared_type(schema, is_result=True)) == "object with a, b"


# --- guessed meanings -----------------------------------------------------------------------------

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def surest(evidence):
    return evidence.meanings[0].meaning if evidence.meanings else ""


@pytest.mark.parametrize(
    ("name", "schema", "meaning"),
    [
        ("departure_date", TEXT, "date"),
        ("userId", TEXT, "id:user"),
        ("IPAddress", TEXT, "ip"),
        ("num_rooms", {"type": "integer"}, "count"),
        ("total_price", NUMBER, "money"),
        ("lat", NUMBER, "latitude"),
        ("learning_rate", NUMBER, ""),
        ("", TEXT, ""),
    ],
)
def test_names_tell(name, schema, meaning):
    """The last words of a name say what is meant; most names say nothing."""
    assert surest(type_of(schema, name=name)) == meaning


@pytest.mark.parametrize(
    ("description", "schema", "meaning"),
    [
        ("The day, as YYYY-MM-DD.", TEXT, "date"),
        ("The city and state, e.g. San Francisco, CA", TEXT, "place"),
        ("How far, in kilometers.", NUMBER, "length"),
    ],
)
def test_texts_tell(description, schema, meaning):
    """Formats, standards and units in a text are clues."""
    assert surest(type_of(schema, description=description)) == meaning


def test_enums_and_observed_values_tell():
    """Values in common with a word list, or of one form, are clues."""
    days = {"type": "string", "enum": ["Monday", "Tuesday", "Sunday"]}
    assert surest(type_of(days)) == "weekday"
    assert surest(type_of(TEXT, observed=["a@b.org", "c@d.org"])) == "email"
    assert type_of(TEXT, observed=["a@b.org", "red hat", "x"]).meanings == ()


def test_worked_examples_are_observed_values():
    """The arguments of L4 say what a badly named parameter takes."""
    tool = ToolDefinition(
        name="ping",
        signature=Signature(parameters={"type": "object", "properties": {"x": TEXT}}),
        description=Description(summary="Ping it."),
        examples=(Example(arguments={"x": "192.0.2.1"}, result=True),),
    )
    assert surest(signature_types(tool).inputs["x"]) == "ip"


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("2024-08-15", "date"),
        ("2024-02-30", ""),
        ("2024-08-15T10:00:00Z", "datetime"),
        ("ada@example.org", "email"),
        ("https://example.org/a?b=c", "url"),
        ("192.0.2.1", "ip"),
        ("123e4567-e89b-12d3-a456-426614174000", "uuid"),
        ("+44 20 7946 0958", "phone"),
        ("$1,250.50", "money"),
        ("5 km", "length"),
        ("EUR", "currency"),
        ("France", "country"),
        ("Paris", ""),
        ("a" * 10_000, ""),
        (True, ""),
        (["2024-08-15", "2024-08-16"], "date"),
        (["2024-08-15", "soon"], ""),
    ],
)
def test_values_tell_only_what_their_form_leaves_no_doubt_about(value, meaning):
    """A date is a date; a bare word or number could be many things."""
    assert surest(type_of_value(value)) == meaning


def test_of_what_json_can_not_write_nothing_is_known():
    """A value that holds itself, or has no end, is untyped and not an error."""
    itself, deep = [], 1
    itself.append(itself)
    for _ in range(5_000):
        deep = [deep]
    for value in (itself, deep, 10**5_000):
        assert slot_of_value(value).is_untyped


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("text", TypeSet.of("string")),
        (
            "list of dates",
            TypeSet.list_of(TypeSet.of("integer", "number", "string", meaning="date")),
        ),
        ("string[]", TypeSet.list_of(TypeSet.of("string"))),
        ("number or null", TypeSet.of("number", "null")),
        ("number or gizmo", ANY),
        ("x" * 100_000, ANY),
    ],
)
def test_words_of_a_planner_are_types(words, kind):
    """Unknown words are no types, which changes nothing."""
    found = named_type(words)
    assert found == kind or (found.bases == kind.bases and found <= kind)
