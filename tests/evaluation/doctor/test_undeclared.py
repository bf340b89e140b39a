"""What schemas leave open."""

import pytest

from agentkit import ToolDefinition

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
        ({"enum": ["a", "b"]}, "untyped_enum"),
        ({"type": "string", "enum": ["a", "b", "a"]}, "repeated_values"),
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
    ],
)
def test_declared_schemas_are_left_alone(a_tool, codes, schema):
    """What is declared in one way or another is no finding."""
    place = {"type": "object", "properties": {"x": {"type": "number", **TEXT}}}
    definition = a_tool(properties={"thing": {**TEXT, **schema}}, **{"$defs": {"Place": place}})
    assert not codes(definition, providers=["anthropic"])


def test_required_names_that_are_no_properties(a_tool, look):
    """They are listed, and the proposal drops them alone."""
    definition = a_tool(required=["name", "nom"])
    (found,) = look(definition, codes=["ghost_required"])
    assert found.what == "nom"
    assert found.proposal.after.signature.required == ("name",)


def test_references_in_a_circle(a_tool, codes):
    """A reference that leads to itself is no schema; a recursive type is one."""
    circle = {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}
    thing = {"thing": {"$ref": "#/$defs/A", **TEXT}}
    assert "dangling_reference" in codes(a_tool(properties=thing, **{"$defs": circle}))
    tree = {"A": {"type": "object", "properties": {"child": {"$ref": "#/$defs/A", **TEXT}}}}
    assert "dangling_reference" not in codes(a_tool(properties=thing, **{"$defs": tree}))


def test_results_that_are_not_declared(a_tool, codes):
    """A note, since few sources declare results."""
    silent = ToolDefinition.from_schema("find", "Find a city.", {})
    assert "untyped_result" in codes(silent)
    assert "untyped_result" not in codes(a_tool())


def test_enums_are_typed_by_their_values(a_tool, look):
    """One type for all values gives a proposal, whole numbers beside others are numbers."""
    definition = a_tool(
        properties={"a": {"enum": [1, 2.5], **TEXT}, "b": {"enum": [True, False], **TEXT}}
    )
    (found,) = look(definition, codes=["untyped_enum"])
    properties = found.proposal.after.signature.properties
    assert (properties["a"]["type"], properties["b"]["type"]) == ("number", "boolean")
    assert found.proposal.level == "L1"
