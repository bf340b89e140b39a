"""Which schemas Anthropic's models write to by themselves, and what is sent for the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agentkit.messages import UserMessage
from agentkit.models.anthropic_messages import (
    AnthropicCodec,
    CodecOptions,
    native_schema,
    writes_to_schemas,
)
from agentkit.models.base import ModelRequest
from agentkit.tools.definition import ToolDefinition

NATIVE = CodecOptions(native_output=True)
TOOL = ToolDefinition.from_schema("f", "F.", {"type": "object"})
QUESTION = ModelRequest(messages=(UserMessage(text="x"),), tools=(TOOL,))


class Leg(BaseModel):
    """A part of a trip."""

    to: str
    by: Literal["train", "ship"] = "train"


class Trip(BaseModel):
    """What an agent is asked for."""

    legs: list[Leg]
    back: Leg | None = None


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-4-5-20250929", True),
        ("claude-opus-4-6", True),
        ("claude-sonnet-5-5", True),
        ("claude-fable-5", True),
        ("anthropic/claude-haiku-4.5", True),
        ("us.anthropic.claude-sonnet-4-6-20260217-v1:0", True),
        ("claude-opus-4-1", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-opus-4@20250514", False),
        ("claude-3-7-sonnet-latest", False),
        ("claude-instant-1.2", False),
        ("claude", False),
        ("gpt-4o", False),
        ("", False),
    ],
)
def test_model_by_its_name(model, expected) -> None:
    """Claude 4.5 and later do; a name of another form says nothing."""
    assert writes_to_schemas(model) is expected


def test_types_are_closed() -> None:
    """A pydantic model's schema is taken, its objects closed and its definitions kept."""
    schema = Trip.model_json_schema()
    native = native_schema(schema)
    assert native is not None
    assert native["additionalProperties"] is False
    assert native["$defs"]["Leg"]["additionalProperties"] is False
    assert native["properties"] == schema["properties"]
    assert "additionalProperties" not in schema


def with_property(**schema: Any) -> dict[str, Any]:
    """An object with one property."""
    return {"type": "object", "properties": {"x": schema}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": [1]},
        {**with_property(type="integer"), "additionalProperties": True},
        {**with_property(type="integer"), "$defs": 3},
        with_property(type="integer", minimum=1),
        with_property(type="string", pattern="a*"),
        with_property(type="string", format="phone"),
        with_property(type="object", additionalProperties={"type": "integer"}),
        with_property(type=["object", "null"], properties={}),
        with_property(enum=[[1]]),
        with_property(enum=3),
        with_property(anyOf=3),
        with_property(oneOf=[{"type": "integer"}]),
        with_property(**{"$ref": "#/$defs/Gone"}),
        with_property(**{"$ref": "https://example.com/schema"}),
        {**with_property(**{"$ref": "#"})},
        {
            **with_property(**{"$ref": "#/$defs/Tree"}),
            "$defs": {"Tree": with_property(**{"$ref": "#/$defs/Tree"})},
        },
        with_property(type="array", items=True),
    ],
)
def test_schemas_that_are_not_taken(schema: dict[str, Any]) -> None:
    """Open, bounded, recursive or misshapen schemas are asked for by the answer tool."""
    assert native_schema(schema) is None
    fields = AnthropicCodec(replace(QUESTION, output_schema=schema), NATIVE).encode("m")
    assert "output_config" not in fields
    assert [tool["name"] for tool in fields["tools"]] == ["f", "answer"]


@pytest.mark.parametrize("choice", ["auto", "none", "required"])
def test_choice_of_tools_stays(choice: Any) -> None:
    """Where the model writes to the schema itself, no tool is added and no call forced."""
    schema = with_property(type="integer")
    request = replace(QUESTION, output_schema=schema, tool_choice=choice)
    fields = AnthropicCodec(request, NATIVE).encode("m")
    expected = {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}
    assert fields["output_config"] == {"format": expected}
    assert [tool["name"] for tool in fields["tools"]] == ["f"]
    plain = AnthropicCodec(replace(QUESTION, tool_choice=choice), NATIVE).encode("m")
    assert fields.get("tool_choice") == plain.get("tool_choice")
