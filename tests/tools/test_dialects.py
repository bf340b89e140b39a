"""Schemas of other dialects become valid JSON Schema."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from agentkit.tools import normalise_parameters, normalise_schema
from agentkit.tools.sources.dialects import read_type_name

# --- dialects -------------------------------------------------------------------------------------


def test_python_dialect() -> None:
    """A tool as benchmarks write it, with every repair named."""
    raw = {
        "type": "dict",
        "properties": {
            "city": {"type": "str", "description": None, "required": True},
            "days": {"type": "int", "optional": True, "default": "3"},
            "where": {"type": "tuple", "items": {"type": "float"}},
            "anything": {"type": "any", "enum": []},
            "options": {"type": "HashMap"},
            "names": {"type": "ArrayList", "items": {"type": "String"}},
            "code": {"type": "string", "pattern": "(?<bad>"},
        },
        "required": ["days"],
    }
    received = copy.deepcopy(raw)
    found = normalise_parameters(raw)
    assert raw == received  # what was received is not touched
    assert found.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": "3"},
            "where": {"type": "array", "items": {"type": "number"}},
            "anything": {},
            "options": {"type": "object"},
            "names": {"type": "array", "items": {"type": "string"}},
            "code": {"type": "string"},
        },
        "required": ["days", "city"],
    }
    assert [(change.pointer, change.rule) for change in found.changes] == [
        ("/type", "type dict -> object"),
        ("/properties/city/type", "type str -> string"),
        ("/properties/city/description", "description dropped, it cannot be null"),
        ("/properties/days/type", "type int -> integer"),
        ("/properties/where/type", "type tuple -> array"),
        ("/properties/where/items/type", "type float -> number"),
        ("/properties/anything/type", "type 'any' dropped"),
        ("/properties/anything/enum", "empty enum dropped"),
        ("/properties/options/type", "type HashMap -> object"),
        ("/properties/names/type", "type ArrayList -> array"),
        ("/properties/names/items/type", "type String -> string"),
        ("/properties/code/pattern", "pattern dropped: it is not a regular expression"),
        ("/properties/city", "required true moved to the object"),
        ("/properties/days", "optional true moved to the object"),
    ]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"type": ["str", "None"]}, {"type": ["string", "null"]}),
        ({"type": "list[int]"}, {"type": "array", "items": {"type": "integer"}}),
        (
            {"type": "list[int] | str"},
            {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]},
        ),
        ({"items": [{"type": "int"}]}, {"prefixItems": [{"type": "integer"}]}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"$ref": "#/$defs/A", "nullable": True},
            {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
        ),
        ({"minimum": 3, "exclusiveMinimum": True}, {"exclusiveMinimum": 3}),
        ({"enum": {"a": "first", "b": "second"}}, {"enum": ["a", "b"]}),
        ({"required": "city"}, {"required": ["city"]}),
        ({"anyOf": {"type": "int"}}, {"anyOf": [{"type": "integer"}]}),
        ({"patternProperties": {"(": {}, "^a": {}}}, {"patternProperties": {"^a": {}}}),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, {}),
        (True, {}),
        (False, {"not": {}}),
    ],
)
def test_repairs(raw, expected) -> None:
    """Each known mistake is repaired and reported."""
    found = normalise_schema(raw)
    assert found.schema == expected
    assert found.changes
    Draft202012Validator.check_schema(found.schema)


@pytest.mark.parametrize(
    ("raw", "properties", "required"),
    [
        ({"city": {"type": "str"}, "type": {"type": "str"}}, ["city", "type"], ()),
        ({"city": "string", "days": "int"}, ["city", "days"], ()),
        ({"items": {"type": "array"}, "to": {"required": True}}, ["items", "to"], ("to",)),
        (
            [{"name": "a", "optional": False}, {"name": "b", "optional": True}, {"x": 1}, "c"],
            ["a", "b", "c"],
            ("a",),
        ),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"b": {}}}}},
            ["b"],
            (),
        ),
    ],
)
def test_parameters_are_always_an_object(raw, properties, required) -> None:
    """However parameters are written, the result is the schema of an object."""
    found = normalise_parameters(raw)
    assert found.schema["type"] == "object"
    assert list(found.schema["properties"]) == properties
    assert tuple(found.schema.get("required", ())) == required
    Draft202012Validator.check_schema(found.schema)


KEYWORDS = [
    "$anchor", "$comment", "$defs", "$id", "$ref", "$schema", "$vocabulary", "additionalProperties",
    "additionalItems", "allOf", "anyOf", "const", "contains", "default", "definitions",
    "dependencies", "dependentRequired", "dependentSchemas", "deprecated", "description", "else",
    "enum", "examples", "exclusiveMinimum", "format", "if", "items", "maxItems", "minLength",
    "minimum", "multipleOf", "not", "nullable", "oneOf", "optional", "pattern",
    "patternProperties", "prefixItems", "properties", "propertyNames", "required", "then", "title",
    "type", "unevaluatedProperties", "uniqueItems",
]  # fmt: skip
WORDS = [
    "", "string", "int", "dict", "any", "list[str]", "str | None", "true", "yes", "#/$defs/a",
    "#", "(", "^a+$", "a", "b", "3", "-1.5",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "a", "b"]), inner, max_size=4)
    ),
    max_leaves=25,
)


@given(VALUES, st.sampled_from([normalise_schema, normalise_parameters]))
def test_result_is_valid_and_final(raw, normalise) -> None:
    """Whatever comes in, a valid schema comes out, and normalising it again changes nothing."""
    found = normalise(raw)
    Draft202012Validator.check_schema(found.schema)
    again = normalise(found.schema)
    assert again.changes == ()
    assert repr(again.schema) == repr(found.schema)
    if not found.changes:
        assert repr(found.schema) == repr(raw)


# --- names of types -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "HashMap<String, Integer>",
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        ("typing.List[float]", {"type": "array", "items": {"type": "number"}}),
        ("string[]", {"type": "array", "items": {"type": "string"}}),
        ("tuple[float, str]", {"type": "array", "items": {}}),
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("Union[int, str, int]", {"type": ["integer", "string"]}),
    ],
)
def test_spellings(text, expected) -> None:
    """Python, Java and TypeScript spellings are known."""
    assert read_type_name(text) == expected


@pytest.mark.parametrize(
    "text", ["", "Date (yyyy)", "List[", "int[str]", "Foo", "list[Foo]", "int | Foo", "[" * 300]
)
def test_unknown_names_are_not_guessed(text) -> None:
    """A name that nobody could read is None, not a guess."""
    assert read_type_name(text) is None
