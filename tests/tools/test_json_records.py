"""Tool records of every provider become the same definition."""

from __future__ import annotations

import json

import pytest

from agentkit.errors import DefinitionError
from agentkit.tools import Effects, ToolDefinition
from agentkit.tools.sources import definition_from_json

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
    "openai responses": {"type": "function", **WORDS, "parameters": SCHEMA},
    "anthropic": {**WORDS, "input_schema": SCHEMA},
    "mcp": {**WORDS, "inputSchema": SCHEMA},
    "gemini": {**WORDS, "parametersJsonSchema": SCHEMA},
    "bedrock": {"toolSpec": {**WORDS, "inputSchema": {"json": SCHEMA}}},
    "cohere": {
        **WORDS,
        "parameter_definitions": {
            "city": {"type": "str", "description": "Where.", "required": True}
        },
    },
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
    """The JSON form of our own definition gives an equal definition, tags added."""
    definition = definition_from_json(
        {**RECORDS["mcp"], "outputSchema": {"type": "object", "properties": {}}}, tags=("a",)
    )
    again = definition_from_json(json.loads(json.dumps(definition.to_json())))
    assert again == definition
    assert definition_from_json(definition.to_json(), tags=("b",)).description.tags == ("a", "b")


def test_parameters_may_be_absent() -> None:
    """A tool without parameters takes an empty object."""
    for parameters in ({}, {"parameters": None}, {"parameters": {}}, {"input_schema": []}):
        definition = definition_from_json({"name": "now", "description": None, **parameters})
        assert definition.signature.parameters == {"type": "object", "properties": {}}
        assert definition.text == ""


@pytest.mark.parametrize(
    ("annotations", "effects"),
    [
        ({"readOnlyHint": True}, Effects(reads=True, writes=False, destructive=False)),
        ({"readOnlyHint": False}, Effects(writes=True)),
        (
            {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
            Effects(writes=True, destructive=True, open_world=True),
        ),
        (
            {"destructiveHint": False, "idempotentHint": True},
            Effects(destructive=False, idempotent=True),
        ),
        ({"title": "Weather", "readOnlyHint": "yes"}, Effects()),
        (None, Effects()),
    ],
)
def test_effects_come_from_mcp_annotations(annotations, effects) -> None:
    """MCP's hints become effects; what a server does not say stays undeclared."""
    definition = definition_from_json({**RECORDS["mcp"], "annotations": annotations})
    assert definition.signature.effects == effects


def test_given_effects_win() -> None:
    """What the caller knows of a tool wins over the server's hints."""
    record = {**RECORDS["mcp"], "annotations": {"readOnlyHint": True}}
    known = Effects(destructive=True)
    assert definition_from_json(record, effects=known).signature.effects == known


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (
            {"outputSchema": {"type": "object", "properties": {"t": {"type": "float"}}}},
            {"type": "object", "properties": {"t": {"type": "number"}}},
        ),
        ({"returns": {"type": "dict", "properties": {}}}, {"type": "object", "properties": {}}),
        ({"returns": "list[str]"}, {"type": "array", "items": {"type": "string"}}),
        (
            {"responses": {"t": {"type": "float"}}},
            {"type": "object", "properties": {"t": {"type": "number"}}},
        ),
        ({"returns": {}}, None),
        ({}, None),
    ],
)
def test_result_schema(result, expected) -> None:
    """A declared result is normalised like parameters; an empty one declares nothing."""
    assert definition_from_json({**RECORDS["bare"], **result}).signature.result == expected


def test_original_is_kept_only_when_something_changed() -> None:
    """A repaired schema remembers what was received, a sound one does not."""
    sound = definition_from_json(RECORDS["openai chat"], reference="tools.json", licence="MIT")
    assert sound.origin.original is None
    assert (sound.origin.kind, sound.origin.reference, sound.origin.licence) == (
        "json_schema",
        "tools.json",
        "MIT",
    )
    given = {"type": "dict", "properties": {"x": {"type": "float"}}}
    repaired = definition_from_json({"name": "f", "parameters": given})
    assert repaired.origin.original == given
    assert repaired.signature.properties == {"x": {"type": "number"}}
    assert definition_from_json(RECORDS["mcp"]).origin.kind == "mcp"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "JSON object, got NoneType"),
        (["a"], "JSON object, got list"),
        ({}, "needs a name"),
        ({"name": "  "}, "needs a name"),
        ({"name": 3}, "name of a tool is text, got int"),
        ({"name": "f", "description": ["a"]}, "description of a tool is text, got list"),
        ({"signature": {}, "format": 99, "name": "f"}, "has format 99"),
        ({"signature": {}}, "not a tool definition"),
        ({"signature": 3, "name": "f"}, "not a tool definition"),
        ({"signature": {}, "name": 3}, "not a tool definition"),
        ({"signature": {}, "name": "f", "format": "new"}, "not a tool definition"),
        ({"name": "f", "parameters": {"properties": {"x": {"default": float("nan")}}}}, "JSON"),
        ({"name": "f\ud800"}, "JSON"),
    ],
)
def test_what_is_no_definition_is_refused(record, message) -> None:
    """A record that can not be a tool is refused with what is wrong and what it was."""
    with pytest.raises(DefinitionError, match=message):
        definition_from_json(record)
