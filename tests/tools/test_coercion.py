"""Coercion, and the one form of arguments that mean the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from support.json_schemas import SCHEMAS, VALUES

from agentkit.tools import UncheckableError, canonical_arguments, canonical_json, coerce, fits

# --- coercion -------------------------------------------------------------------------------------

INTEGER, NUMBER, BOOLEAN = {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
UNITS = {"enum": ["celsius", "kelvin"]}


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("3", INTEGER, 3),
        ("3.0", INTEGER, 3),
        ("2.5", NUMBER, 2.5),
        ("1e3", INTEGER, 1000),
        ("true", BOOLEAN, True),
        ("None", {"type": ["integer", "null"]}, None),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('{"a": "1"}', {"type": "object", "properties": {"a": INTEGER}}, {"a": 1}),
        ("Kelvin", UNITS, "kelvin"),
        ("KELVIN", {"const": "kelvin"}, "kelvin"),
        ("new  york", {"enum": ["New York"]}, "New York"),
        (36, {"enum": ["36", "48"]}, "36"),
        (["1", 2], {"items": INTEGER}, [1, 2]),
        (["1", "1"], {"prefixItems": [INTEGER], "items": {"type": "string"}}, [1, "1"]),
        ("3", {"anyOf": [INTEGER, {"type": "null"}]}, 3),
        ("3", {"allOf": [INTEGER]}, 3),
        ("3", {"$ref": "#/$defs/N", "$defs": {"N": INTEGER}}, 3),
    ],
)
def test_clear_values_are_coerced(value, schema, expected) -> None:
    """Text of numbers, booleans and JSON, and enum members in other case, become what is meant."""
    found = coerce(value, schema)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("three", INTEGER),
        ("3.5", INTEGER),
        ("1_000", INTEGER),
        ("٣", INTEGER),
        ("9" * 5000, INTEGER),
        ("1e999", NUMBER),
        (3.5, INTEGER),
        ("yes", BOOLEAN),
        (3, {"type": "string"}),
        ("[1, 2", {"type": "array"}),
        ('{"a": 1, "a": 2}', {"type": "object"}),
        ("[" * 100_000, {"type": "array"}),
        ("A", {"enum": ["a ", "a"]}),
        ("3", {"anyOf": [INTEGER, {"type": "string"}]}),
        ("3", "nonsense"),
        ("3", {"$ref": "#/$defs/missing"}),
        (["a"], {"enum": ["a", ["b"]]}),
        ({"unknown": "3"}, {"properties": {"n": INTEGER}}),
    ],
)
def test_doubtful_values_stay(value, schema) -> None:
    """A value that is fine, or that could mean several things, is returned itself."""
    assert coerce(value, schema) is value


def test_defaults_of_optional_properties_are_filled() -> None:
    """The canonical form has the defaults of absent optional properties, those of references too."""
    schema = {
        "properties": {
            "unit": {"type": "string", "default": "km"},
            "limit": {"type": "integer", "default": "10"},
            "after": {"type": "string", "default": None},
            "city": {"type": "string", "default": "Rome"},
            "where": {"$ref": "#/$defs/Where"},
        },
        "required": ["city"],
        "$defs": {"Where": {"default": {}, "properties": {"radius": {"default": 5}}}},
    }
    filled = {"after": None, "limit": 10, "unit": "km", "where": {"radius": 5}}
    assert canonical_arguments({}, schema) == filled
    assert coerce({}, schema) == {}


def test_recursive_schema() -> None:
    """A schema that refers to itself is followed as deep as the value goes, and no deeper."""
    schema = {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "properties": {
                    "value": INTEGER,
                    "next": {"$ref": "#/$defs/Node", "default": {}},
                    "note": {"default": "-"},
                }
            }
        },
    }
    found = canonical_arguments({"value": "1", "next": {"value": "2"}}, schema)
    assert found == {"value": 1, "next": {"value": 2}, "note": "-"}
    assert coerce(found, schema) is found


@given(VALUES, SCHEMAS, SCHEMAS)
def test_coercion_is_idempotent(value, schema, definition) -> None:
    """Coercing twice gives what coercing once gives, even under contradictory schemas."""
    document = {**schema, "$defs": {"A": definition, "B": INTEGER}}
    once = coerce(value, document)
    assert coerce(once, document) is once


@given(VALUES, SCHEMAS)
def test_valid_values_stay_as_they_are(value, schema) -> None:
    """Nothing is done to a value that fits."""
    if fits(value, schema):
        assert coerce(value, schema) is value


# --- canonical arguments --------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "default": 1},
        "scale": {"type": "number"},
        "unit": {"enum": ["celsius", "kelvin"], "default": "celsius"},
        "after": {"type": "string", "default": None},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}}},
    },
    "required": ["city"],
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"city": "Rome", "days": 2}, {"days": "2", "city": "Rome"}),
        ({"city": "Rome"}, {"city": "Rome", "days": 1, "unit": "Celsius", "after": None}),
        ({"city": "Rome", "scale": "3.0"}, {"city": "Rome", "scale": 3}),
        ({"where": {"lat": 1, "z": 2}}, {"where": {"z": 2.0, "lat": "1"}}),
    ],
)
def test_same_meaning_same_form(one, other) -> None:
    """Key order, number spelling, case of enums and written-out defaults make no difference."""
    left, right = canonical_arguments(one, SCHEMA), canonical_arguments(other, SCHEMA)
    assert left == right
    assert list(left) == list(right) == sorted(left)
    assert repr(left) == repr(right)
    assert canonical_json(left) == canonical_json(right)


def test_arguments_that_are_nested_too_deeply_have_no_canonical_form() -> None:
    """Hundreds of levels end with a reason, in the value as well as in a default."""
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(UncheckableError, match="nested too deeply"):
        canonical_arguments({"city": deep}, SCHEMA)
    with pytest.raises(UncheckableError, match="nested too deeply"):
        canonical_arguments({}, {"properties": {"x": {"default": deep}}})
