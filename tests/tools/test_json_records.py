"""Definitions from JSON records, batches and public corpora."""

from __future__ import annotations

import json

import pytest

from agentkit.errors import DefinitionError
from agentkit.tools import (
    Effects,
    ToolDefinition,
    definition_from_json,
    definitions_from_json,
)

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
    """The JSON form of our own definition gives an equal definition, tags added."""
    definition = definition_from_json(
        {**RECORDS["mcp"], "outputSchema": {"type": "object", "properties": {}}}, tags=("a",)
    )
    again = definition_from_json(json.loads(json.dumps(definition.to_json())))
    assert again == definition
    assert definition_from_json(definition.to_json(), tags=("b",)).description.tags == ("a", "b")


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
    ("result", "expected"),
    [
        (
            {"outputSchema": {"type": "object", "properties": {"t": {"type": "float"}}}},
            {"type": "object", "properties": {"t": {"type": "number"}}},
        ),
        ({"returns": "list[str]"}, {"type": "array", "items": {"type": "string"}}),
        ({}, None),
    ],
)
def test_result_schema(result, expected) -> None:
    """A declared result is normalised like parameters; an empty one declares nothing."""
    assert definition_from_json({**RECORDS["bare"], **result}).signature.result == expected


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
def test_what_is_no_definition_is_refused(record, message) -> None:
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


def test_bad_entries_are_reported_in_place() -> None:
    """A bad entry is returned with its index and the reason, and the good ones are kept."""
    batch = definitions_from_json([ADD, {"nom": "x"}, 3, SUB])
    assert [definition.name for definition in batch.definitions] == ["add", "sub"]
    assert [(entry.index, entry.entry) for entry in batch.rejected] == [(1, {"nom": "x"}), (2, 3)]
    assert "needs a name" in batch.rejected[0].reason


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


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("corpus", "size"),
    [("bfcl", 3386), ("seal_tools", 4076), ("nestful", 173), ("tooluniverse", 3025)],
)
def test_catalogue_is_imported_whole(corpus_rows, corpus: str, size: int) -> None:
    """Each record of a catalogue becomes a definition that survives JSON, and none is rejected."""
    records = []
    for row in corpus_rows(corpus):
        raw = row.get("raw_parameters", row["parameters"])
        own_keys = corpus in {"seal_tools", "nestful"}
        words = {key: row[key] for key in ("name", "description", "returns") if key in row}
        records.append(words | (raw if own_keys else {"parameters": raw}))
    batch = definitions_from_json(records)
    assert batch.rejected == ()
    assert len(batch.definitions) == size
    some = batch.definitions[::10]
    again = definitions_from_json(json.dumps([definition.to_json() for definition in some]))
    assert again.definitions == some
