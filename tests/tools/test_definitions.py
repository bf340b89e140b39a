"""Definitions, their canonical JSON, and the records and dialects that they are read from."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import re
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, strategies as st
from jsonschema import Draft202012Validator

from agentkit.errors import DefinitionError
from agentkit.tools import (
    ChildReference,
    Description,
    Effects,
    Example,
    Origin,
    Signature,
    Specification,
    ToolDefinition,
    canonical_json,
    definition_from_json,
    definitions_from_json,
    normalise_parameters,
    normalise_schema,
)

# --- definitions ----------------------------------------------------------------------------------

FULL = ToolDefinition(
    name="solve",
    signature=Signature(
        parameters={"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
        result={"type": "number"},
        effects=Effects(reads=True, writes=False, idempotent=True),
        children=(ChildReference(name="add", digest="0" * 64),),
    ),
    description=Description(
        summary="Solve.", tags=("math",), parameters={"a": "First."}, usage_rules=("Be brief.",)
    ),
    specification=Specification(
        pre=("a != 0",), post=("result > 0",), text=("Fast.",), complexity="O(1)"
    ),
    examples=(Example(arguments={"a": 1}, result=[], query="one"), Example(arguments={})),
    origin=Origin(reference="here", original={"type": "dict"}, licence="MIT"),
)


@pytest.mark.parametrize("definition", [FULL, ToolDefinition(name="é\U0001f600")])
def test_definition_survives_json_text(definition) -> None:
    """Writing a definition as JSON and reading it back gives an equal one of the same digest."""
    copy = ToolDefinition.from_json(json.loads(json.dumps(definition.to_json())))
    assert copy == definition
    assert copy.digest == definition.digest
    assert hash(copy) == hash(definition)


def test_digest_covers_the_levels_but_not_the_origin() -> None:
    """Any change to a level changes the digest; where it came from does not."""
    moved = dataclasses.replace(FULL, origin=Origin(reference="elsewhere"))
    assert (moved.digest, moved) == (FULL.digest, FULL)
    for change in (
        {"name": "other"},
        {"signature": Signature()},
        {"description": Description()},
        {"specification": Specification()},
        {"examples": ()},
    ):
        assert dataclasses.replace(FULL, **change).digest != FULL.digest


def test_digest_is_stable_over_versions() -> None:
    """The digest of a known definition is a known number, so stores of old versions stay valid."""
    definition = ToolDefinition.from_schema(
        "double", "Twice.", {"type": "object", "properties": {"x": {"type": "number"}}}
    )
    canonical = (
        b'{"description":{"summary":"Twice."},"format":1,"name":"double","signature":'
        b'{"parameters":{"properties":{"x":{"type":"number"}},"type":"object"}}}'
    )
    assert definition.digest == hashlib.sha256(canonical).hexdigest()
    bare = ToolDefinition(name="f", signature=Signature(parameters={}))
    assert bare.to_json() == {
        "format": 1,
        "name": "f",
        "signature": {"parameters": {}},
        "origin": {"kind": "function"},
    }


@pytest.mark.parametrize(
    ("names", "effects"),
    [
        ((), Effects()),
        (("reads",), Effects(reads=True, writes=False)),
        (("destructive",), Effects(destructive=True, writes=True)),
    ],
)
def test_effects_from_names(names, effects) -> None:
    """Reading alone declares that nothing is written; destroying declares that something is."""
    assert Effects.of(names) == effects
    assert Effects.of(("reads",)).is_read_only
    assert not Effects(destructive=True, writes=False).is_read_only


@pytest.mark.parametrize(
    ("name", "parameters", "told"),
    [
        (1, {}, "its name is 1"),
        ("f\ud800", {}, "surrogates not allowed"),
        ("f", {"properties": {"x": {"maximum": float("nan")}}}, "Out of range float"),
        ("f", {"properties": {"x": {"maximum": 10**5_000}}}, "Exceeds the limit"),
        ("f", {"properties": {1: {}}}, "a key that is not text: [1]"),
    ],
)
@pytest.mark.parametrize("as_result", [False, True])
def test_what_json_can_not_write_is_refused_where_it_comes_in(name, parameters, told, as_result):
    """A definition without a digest is none: it is refused at the door, not where it is kept."""
    result = parameters if as_result else None
    with pytest.raises(DefinitionError, match=re.escape(told)):
        ToolDefinition.from_schema(name, "", {} if as_result else parameters, result=result)


# --- canonical JSON -------------------------------------------------------------------------------

EXACT = st.integers(-(2**53) + 1, 2**53 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    st.sampled_from('\x00\x08\x1f"\\/\x7f\x80\u2028\u2029\ud7ff\ue000\uffff\U00010000\U0010ffff')
)
SCALARS = st.none() | st.booleans() | EXACT | TEXTS
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def nested(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """JSON data over the given scalars; tuples among the arrays."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(TEXTS, inner),
        max_leaves=12,
    )


@given(nested(SCALARS) | nested(SCALARS | FLOATS))
@example({"\ue000": 1, "\U00010000": 2})
@example({"\U0001f600": {"\ufb33": "\u2028\x7f\x00"}})
@example([1.0, -0.0, 1e21, 1e-7, 0.1])
def test_canonical_json_is_that_of_the_reference(data: Any) -> None:
    """With and without floats, data are written as the reference implementation writes them."""
    assert canonical_json(data) == rfc8785.dumps(data)


# --- records of every provider --------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where."}},
    "required": ["city"],
}
WORDS = {"name": "get_weather", "description": "Weather of a city."}

RECORDS = {
    "bare": {**WORDS, "parameters": SCHEMA},
    "openai chat": {
        "type": "function",
        "function": {**WORDS, "parameters": SCHEMA, "strict": True},
    },
    "anthropic": {**WORDS, "input_schema": SCHEMA},
    "mcp": {**WORDS, "inputSchema": SCHEMA},
    "bedrock": {"toolSpec": {**WORDS, "inputSchema": {"json": SCHEMA}}},
    "seal-tools": {
        "api_name": "get_weather",
        "api_description": "Weather of a city.",
        "parameters": {"city": {"type": "str", "description": "Where."}},
        "required": ["city"],
    },
    "list of parameters": {
        **WORDS,
        "parameters": [
            {"name": "city", "type": "String", "description": "Where.", "required": "yes"}
        ],
    },
}


@pytest.mark.parametrize("name", RECORDS)
def test_all_shapes_say_the_same(name) -> None:
    """Each provider's record gives the same name, words, parameters and digest."""
    definition = definition_from_json(RECORDS[name])
    assert definition == ToolDefinition.from_schema("get_weather", "Weather of a city.", SCHEMA)


def test_own_json_comes_back() -> None:
    """The JSON form of our own definition gives an equal definition."""
    definition = definition_from_json(
        {
            **RECORDS["mcp"],
            "outputSchema": {"type": "object", "properties": {}},
            "tags": ["a", 1, "b"],
        }
    )
    assert definition.description.tags == ("a", "b")
    assert definition_from_json(json.loads(json.dumps(definition.to_json()))) == definition


@pytest.mark.parametrize(
    ("annotations", "effects"),
    [
        ({"readOnlyHint": True}, Effects(reads=True, writes=False, destructive=False)),
        (
            {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
            Effects(writes=True, destructive=True, open_world=True),
        ),
        ({"title": "Weather", "readOnlyHint": "yes"}, Effects()),
        (None, Effects()),
    ],
)
def test_effects_come_from_mcp_annotations(annotations, effects) -> None:
    """MCP's hints become effects; what a server does not say stays undeclared."""
    definition = definition_from_json({**RECORDS["mcp"], "annotations": annotations})
    assert definition.signature.effects == effects


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (["a"], "JSON object, got list"),
        ({}, "needs a name"),
        ({"name": 3}, "name of a tool is text, got int"),
        ({"signature": {}, "format": 99, "name": "f"}, "has format 99"),
        ({"signature": 3, "name": "f"}, "not a tool definition"),
        ({"name": "f", "parameters": {"properties": {"x": {"default": float("nan")}}}}, "JSON"),
    ],
)
def test_what_is_no_record_of_a_tool_is_refused(record, message) -> None:
    """A record that cannot be a tool is refused with what is wrong and what it was."""
    with pytest.raises(DefinitionError, match=message):
        definition_from_json(record)


# --- files of definitions -------------------------------------------------------------------------

ADD, SUB = {"name": "add"}, {"name": "sub", "parameters": {"type": "object", "properties": {}}}


def names(data) -> list[str]:
    """Names of the usable definitions; nothing may be rejected."""
    batch = definitions_from_json(data)
    assert batch.rejected == ()
    return [definition.name for definition in batch.definitions]


@pytest.mark.parametrize(
    "data",
    [
        [ADD, SUB],
        json.dumps([ADD, SUB]),
        f"{json.dumps(ADD)}\n\n{json.dumps(SUB)}\n",
        "\ufeff" + json.dumps([ADD, SUB]),
        {"tools": [ADD, SUB]},
        [{"functionDeclarations": [ADD]}, {"functionDeclarations": [SUB]}],
    ],
)
def test_shapes_of_files(data) -> None:
    """Lists, JSON lines and answers of servers hold the same two tools."""
    assert names(data) == ["add", "sub"]


@pytest.mark.parametrize(
    "data", ['[{"name": "add"},\n {"name": }]', "hello", b"\xff\xfe{", "[" * 100_000]
)
def test_broken_document_is_one_problem(data) -> None:
    """One mistake in one document is reported once, not once a line."""
    batch = definitions_from_json(data)
    assert batch.definitions == ()
    assert len(batch.rejected) == 1
    assert "not JSON" in batch.rejected[0].reason


# --- public corpora -------------------------------------------------------------------------------


# --- dialects -------------------------------------------------------------------------------------


def test_python_dialect() -> None:
    """A tool as benchmarks write it."""
    raw = {
        "type": "dict",
        "properties": {
            "city": {"type": "str", "description": None, "required": True},
            "days": {"type": "int", "default": "3"},
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
    assert found == {
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
        ({"enum": ["a"], "nullable": True}, {"enum": ["a", None]}),
        (
            {"$ref": "#/$defs/A", "nullable": True},
            {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
        ),
        ({"minimum": 3, "exclusiveMinimum": True}, {"exclusiveMinimum": 3}),
        ({"minimum": 3, "exclusiveMinimum": False}, {"minimum": 3}),
        ({"required": "city"}, {"required": ["city"]}),
        ({"minItems": 1.5}, {}),
        ({"patternProperties": {"(": {}, "^a": {}}}, {"patternProperties": {"^a": {}}}),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, {}),
        (True, {}),
        (False, {"not": {}}),
        # names of types in Python, Java and TypeScript
        (
            {"type": "HashMap<String, Integer>"},
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        ({"type": "typing.List[float]"}, {"type": "array", "items": {"type": "number"}}),
        ({"type": "string[]"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "tuple[float, str]"}, {"type": "array", "items": {}}),
        ({"type": "Optional[int]"}, {"type": ["integer", "null"]}),
        ({"type": "Union[int, str, int]"}, {"type": ["integer", "string"]}),
    ],
)
def test_repairs(raw, expected) -> None:
    """Each known mistake is repaired."""
    found = normalise_schema(raw)
    assert found == expected
    Draft202012Validator.check_schema(found)


@pytest.mark.parametrize(
    ("raw", "properties", "required"),
    [
        ({"city": {"type": "str"}, "type": {"type": "str"}}, ["city", "type"], ()),
        ({"city": "string", "days": "int"}, ["city", "days"], ()),
        ({"items": {"type": "array"}, "to": {"required": True}}, ["items", "to"], ("to",)),
        (
            [{"name": "a", "required": "yes"}, {"name": "b", "required": False}, {"x": 1}, "c"],
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
    assert found["type"] == "object"
    assert list(found["properties"]) == properties
    assert tuple(found.get("required", ())) == required
    Draft202012Validator.check_schema(found)


KEYWORDS = [
    "$anchor", "$comment", "$defs", "$id", "$ref", "$schema", "$vocabulary", "additionalProperties",
    "additionalItems", "allOf", "anyOf", "const", "contains", "default", "definitions",
    "dependencies", "dependentRequired", "dependentSchemas", "deprecated", "description", "else",
    "enum", "examples", "exclusiveMinimum", "format", "if", "items", "maxItems", "minLength",
    "minimum", "multipleOf", "not", "nullable", "oneOf", "optional", "pattern",
    "patternProperties", "prefixItems", "properties", "propertyNames", "required", "then", "title",
    "type", "unevaluatedProperties", "uniqueItems",
]  # fmt: skip
SPELLINGS = [
    "", "string", "int", "dict", "any", "list[str]", "str | None", "true", "yes", "#/$defs/a",
    "#", "(", "^a+$", "a", "b", "3", "-1.5",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.sampled_from(SPELLINGS),
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
    Draft202012Validator.check_schema(found)
    assert repr(normalise(found)) == repr(found)
