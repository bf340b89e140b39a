"""Schemas of OpenAPI as JSON Schema 2020-12."""

import pytest
from jsonschema import Draft202012Validator

from agentkit import ToolDefinition
from agentkit.interop.openapi import openapi_tools
from agentkit.tools.validation import validate_arguments


@pytest.fixture
def argument(make):
    """The schema of the argument ``a``, after a parameter's schema was converted."""

    def convert(schema, *, version="3.0.3", **schemas):
        given = make.operation(
            parameters=[make.parameter("a", "query", schema)],
            version=version,
            components={"schemas": schemas},
        )
        (tool,) = openapi_tools(given)
        whole = tool.definition.signature.parameters
        Draft202012Validator.check_schema(whole)
        return whole["properties"]["a"]

    return convert


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        (
            {"nullable": True, "allOf": [{"type": "object"}]},
            {"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]},
        ),
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"type": "string", "example": "x"}, {"type": "string", "examples": ["x"]}),
        (
            {"type": "integer", "format": "int64", "xml": {}, "x-mine": 1, "externalDocs": {}},
            {"type": "integer", "format": "int64"},
        ),
        (
            {
                "type": "object",
                "properties": {"x-own": {"type": "string"}, "nullable": {"type": "boolean"}},
            },
            {
                "type": "object",
                "properties": {"x-own": {"type": "string"}, "nullable": {"type": "boolean"}},
            },
        ),
    ],
)
def test_the_dialect_of_3_0(argument, old, new):
    """``nullable``, boolean exclusive bounds and annotations become what 2020-12 has."""
    assert argument(old) == new


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"], "exclusiveMinimum": 3, "const": "x"},
        {
            "anyOf": [
                {"type": "integer"},
                {"prefixItems": [{"type": "string"}], "type": "array", "items": False},
            ]
        },
        {"type": "object", "patternProperties": {"^x": {}}, "unevaluatedProperties": False},
    ],
)
def test_3_1_is_kept_as_it_is(argument, schema):
    """OpenAPI 3.1 writes JSON Schema 2020-12 already."""
    assert argument(schema, version="3.1.0") == schema


NODE = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "name": {"type": "string"},
        "secret": {"type": "string", "writeOnly": True},
        "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        "other": {"$ref": "#/components/schemas/Other"},
    },
}
CYCLIC = {
    "Node": NODE,
    "Other": {"type": "object", "properties": {"back": {"$ref": "#/components/schemas/Node"}}},
}


def test_recursion_stays_a_reference(make):
    """A schema that holds itself is kept under ``$defs`` once, and calls are checked at any depth."""
    media = {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}
    (tool,) = openapi_tools(
        make.operation(
            "post",
            requestBody={"required": True, "content": media},
            responses={"200": {"content": media}},
            components={"schemas": CYCLIC},
        )
    )
    signature = tool.definition.signature
    assert set(signature.parameters["$defs"]) == {"Node", "Other"}
    assert signature.required == ("name",)  # the id is only read, so a call does not give it
    assert set(signature.properties) == {"name", "secret", "children", "other"}
    assert set(signature.result["properties"]) == {"id", "name", "children", "other"}
    Draft202012Validator.check_schema(signature.result)
    assert ToolDefinition.from_json(tool.definition.to_json()).digest == tool.definition.digest
    deep = {"name": "a", "children": [{"name": "b", "other": {"back": {"name": 3}}}]}
    (problem,) = validate_arguments(tool.definition, deep)
    assert "children[0].other.back.name" in problem.rule


def test_far_schemas_are_cut(make):
    """A result that reaches half of the API keeps what is near and allows anything beyond."""
    schemas = {
        f"S{at}": {
            "type": "object",
            "properties": {
                "next": {"$ref": f"#/components/schemas/S{at + 1}"},
                **{f"p{number}": {"type": "string"} for number in range(10)},
            },
        }
        for at in range(50)
    } | {"S50": {"type": "object"}}
    responses = make.answered({"$ref": "#/components/schemas/S0"})
    (tool,) = openapi_tools(make.operation(responses=responses, components={"schemas": schemas}))
    result = tool.definition.signature.result
    assert 3 < len(result["$defs"]) < 15
    Draft202012Validator(result).validate({"next": {"next": {"p1": "x"}}})


OTHER = "https://example.com/schemas/pet.json"


def test_remote_references_are_refused(make):
    """Nothing is fetched: the operation is reported with what to do, the others are mapped."""
    given = make.operation(parameters=[make.parameter("a", "query", {"$ref": f"{OTHER}#/Pet"})])
    given["paths"]["/y"] = {"get": {"responses": make.answered({"$ref": OTHER})}}
    found = openapi_tools(given)
    (entry,) = found.report.unusable
    assert "is not fetched; bundle the description into one file" in entry.reason
    assert "the result stays undeclared" in found.report.mapped[0].notes[0]
