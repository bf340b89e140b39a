"""What schemas leave open, and what providers refuse."""

from __future__ import annotations

import pytest

from agentkit import ToolDefinition
from agentkit.evaluation.doctor import PROVIDER_RULES, PROVIDERS

TEXT = {"description": "What people call it."}


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ({}, "untyped_parameter"),
        ({"default": 3}, "untyped_parameter"),
        ({"type": "object"}, "open_object"),
        ({"type": ["object", "null"], "properties": {}}, "open_object"),
        ({"type": "array"}, "untyped_items"),
        ({"type": "array", "items": {}}, "untyped_items"),
        ({"$ref": "#/$defs/Nothing"}, "dangling_reference"),
        ({"$ref": "other.json"}, "dangling_reference"),
        ({"type": "string", "title": "Thing Name"}, "generated_titles"),
        ({"type": "object", "properties": {}, "required": ["x"]}, "ghost_required"),
    ],
)
def test_open_schemas_are_found(a_tool, codes, schema, code):
    """Each gap has its own name."""
    assert code in codes(a_tool(properties={"thing_name": {**TEXT, **schema}}))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"const": 3},
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "object", "properties": {"a": {"type": "string", **TEXT}}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"type": "string", "enum": ["a", "b"]},
        {"enum": ["a", 1, None]},
        {"$ref": "#/$defs/Place"},
        {"type": "string", "title": "City, as people call it"},
        {"type": "object", "required": ["x"], "allOf": [{"$ref": "#/$defs/Place"}]},
        {
            "type": "object",
            "properties": {"a": {"type": "string", **TEXT}},
            "required": ["x"],
            "allOf": [{"$ref": "#/$defs/Place"}],
        },
    ],
)
def test_declared_schemas_are_left_alone(a_tool, codes, schema):
    """What is declared in one way or another is no finding."""
    place = {"type": "object", "properties": {"x": {"type": "number", **TEXT}}}
    definition = a_tool(properties={"thing": {**TEXT, **schema}}, **{"$defs": {"Place": place}})
    assert not codes(definition, providers=["anthropic"])


def test_results_that_are_not_declared(a_tool, codes):
    """A note, since few sources declare results."""
    silent = ToolDefinition.from_schema("find", "Find a city.", {})
    assert "untyped_result" in codes(silent)
    assert "untyped_result" not in codes(a_tool())


def nested(levels):
    """An object in an object in an object ..."""
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


@pytest.mark.parametrize(
    ("provider", "schema", "code"),
    [
        ("openai", {"oneOf": [{"required": ["name"]}]}, "refused_root"),
        ("openai", {"enum": [{}]}, "refused_root"),
        ("anthropic", {"anyOf": [{"required": ["name"]}]}, "refused_root"),
        ("anthropic", {"properties": {"filter[id]": {"type": "string"}}}, "refused_parameter_name"),
        ("anthropic", {"properties": {"x" * 65: {"type": "string"}}}, "refused_parameter_name"),
        ("openai", {"properties": {"a": {"type": "array"}}}, "refused_array"),
        ("gemini", {"properties": {"a": {"type": "array"}}}, "refused_array"),
        ("gemini", {"properties": {"a": {"$ref": "#/$defs/A"}}}, "refused_keyword"),
        ("gemini", {"additionalProperties": False}, "refused_keyword"),
        ("gemini", {"properties": {"a": {"type": ["string", "null"]}}}, "refused_type"),
        ("gemini", {"properties": {"a": {"type": "integer", "enum": [1]}}}, "refused_type"),
        ("gemini", {"properties": {"a": {"type": "string", "format": "uri"}}}, "refused_type"),
        ("openai-strict", {"allOf": [{"required": ["name"]}]}, "refused_keyword"),
        ("openai-strict", {"properties": {"a": {"type": "object"}}}, "refused_object"),
        ("openai-strict", {"additionalProperties": True}, "refused_object"),
        ("openai-strict", {"properties": {"a": nested(11)}}, "refused_size"),
        (
            "openai-strict",
            {"properties": {"a": {"enum": [str(n) for n in range(1001)]}}},
            "refused_size",
        ),
    ],
)
def test_each_provider_has_its_rules(a_tool, look, provider, schema, code):
    """A schema that breaks a rule is found for the provider whose rule it is."""
    refusals = {rule.kind.code for rule in PROVIDER_RULES}
    found = look(a_tool(**schema), codes=sorted(refusals), providers=[provider])
    assert [one.kind.code for one in found] == [code]
    assert provider in found[0].what


@pytest.mark.parametrize("provider", PROVIDERS)
def test_plain_schemas_are_taken_by_all(a_tool, look, provider):
    """Strings, numbers, lists and objects with descriptions offend nobody."""
    definition = a_tool(
        properties={
            "name": {"type": "string", **TEXT},
            "when": {"type": "string", "format": "date-time", **TEXT},
            "unit": {"type": "string", "enum": ["C", "F"], **TEXT},
            "tags": {"type": "array", "items": {"type": "string"}, **TEXT},
            "place": {"type": "object", "properties": {"x": {"type": "number"}}, **TEXT},
        },
        required=["name"],
    )
    codes = sorted({rule.kind.code for rule in PROVIDER_RULES})
    assert look(definition, codes=codes, providers=[provider]) == []


def test_names_are_told_with_what_is_sent(a_tool, look):
    """A name that no provider takes is one finding, with the name on the wire."""
    found = look(a_tool("math.factorial"), a_tool("math_factorial"), codes=["refused_name"])
    assert [one.tools for one in found] == [("math.factorial",)]
    assert "openai, anthropic, gemini" in found[0].what
    assert "math_factorial_" in found[0].what
    assert look(a_tool("x" * 65), codes=["refused_name"], providers=["anthropic"]) == []
