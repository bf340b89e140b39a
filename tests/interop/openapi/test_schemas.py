"""Schemas of OpenAPI as JSON Schema 2020-12."""

import pytest
from jsonschema import Draft202012Validator

from agentkit.interop.openapi import RemoteReferences, openapi_tools
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


def test_siblings_of_a_reference(argument):
    """They count in 3.1; in 3.0 only a description does, as tools read it."""
    pet = {"type": "object", "properties": {"n": {"type": "string"}}}
    schema = {"$ref": "#/components/schemas/Pet", "minProperties": 1}
    assert argument(schema, Pet=pet) == {"$ref": "#/$defs/Pet"}
    new = argument(schema, version="3.1.0", Pet=pet)
    assert new == {"$ref": "#/$defs/Pet", "minProperties": 1}


def test_small_scalars_are_written_in_place(argument):
    """An enum behind a reference reads better where it is used."""
    schema = {"$ref": "#/components/schemas/Kind"}
    assert argument(schema, Kind={"type": "string", "enum": ["a", "b"]}) == {
        "type": "string",
        "enum": ["a", "b"],
    }


def test_a_discriminator_tells_the_branches_apart(make):
    """With a mapping each branch says by which values it is meant, and calls are held to it."""
    schemas = {
        name: {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
        for name, key in (("Cat", "purr"), ("Dog", "bark"))
    }
    pet = {
        "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {"cat": "Cat", "dog": "#/components/schemas/Dog", "pup": "Dog"},
        },
    }
    body = {"required": True, "content": {"application/json": {"schema": pet}}}
    (tool,) = openapi_tools(
        make.operation("post", requestBody=body, components={"schemas": schemas})
    )

    def fits(**value):
        return not validate_arguments(tool.definition, {"body": value})

    assert fits(kind="cat", purr="x")
    assert fits(kind="pup", bark="x")
    assert not fits(kind="dog", purr="x")
    assert not fits(purr="x")


NODE = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "name": {"type": "string"},
        "secret": {"$ref": "#/components/schemas/Secret"},
        "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        "other": {"$ref": "#/components/schemas/Other"},
    },
}
CYCLIC = {
    "Node": NODE,
    "Other": {"type": "object", "properties": {"back": {"$ref": "#/components/schemas/Node"}}},
    "Secret": {"type": "string", "writeOnly": True},
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
    deep = {"name": "a", "children": [{"name": "b", "other": {"back": {"name": 3}}}]}
    (problem,) = validate_arguments(tool.definition, deep)
    assert "children[0].other.back.name" in problem.rule


@pytest.mark.parametrize(
    "schemas",
    [
        {"A": {"$ref": "#/components/schemas/A"}},
        {
            "A": {"$ref": "#/components/schemas/B"},
            "B": {"allOf": [{"$ref": "#/components/schemas/A"}]},
        },
        {"A": {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/A"}]}},
    ],
)
def test_a_circle_that_never_ends_is_refused(make, schemas):
    """A schema that is defined by nothing but itself can not be checked: request no, result any."""
    schema = {"$ref": "#/components/schemas/A"}
    parameter = make.parameter("a", "query", schema)
    (entry,) = openapi_tools(
        make.operation(parameters=[parameter], components={"schemas": schemas})
    ).report.unusable
    assert "defined by nothing but itself" in entry.reason
    found = openapi_tools(
        make.operation(responses=make.answered(schema), components={"schemas": schemas})
    )
    assert [note.code for note in found.report.mapped[0].notes] == ["result_cut"]


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
    assert "is not fetched; bundle the description into one file, or allow it" in entry.reason
    assert entry.notes[0].pointer == "/paths/~1x/get/parameters/0/schema"
    assert [note.code for note in found.report.mapped[0].notes] == ["result_undeclared"]


def test_remote_references_that_are_allowed(make):
    """The caller's function gives documents under the allowed bases, each once."""
    asked = []

    def fetch(url):
        asked.append(url)
        return (
            '{"Pet": {"type": "object", "properties": {"next": {"$ref": "#/Pet"}, "kind": {"$ref": "kind.json"}}}}'
            if url == OTHER
            else "type: string"
        )

    remote = RemoteReferences(bases=("https://example.com/schemas/",), fetch=fetch)
    given = make.operation(parameters=[make.parameter("a", "query", {"$ref": f"{OTHER}#/Pet"})])
    (tool,) = openapi_tools(given, remote=remote)
    parameters = tool.definition.signature.parameters
    assert parameters["$defs"]["Pet"]["properties"] == {
        "next": {"$ref": "#/$defs/Pet"},
        "kind": {"type": "string"},
    }
    assert asked == [OTHER, "https://example.com/schemas/kind.json"]


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/schemas/../secret.json",
        "https://example.com/schemas/%2e%2e/secret.json",
        "https://example.com.evil.test/schemas/a.json",
        "https://example.com/schemasevil",
        "file:///etc/passwd",
        "//evil.test/schemas/a",
    ],
)
def test_only_the_allowed_bases_are_fetched(make, url):
    """Neither dots nor look-alikes lead out of the bases."""
    remote = RemoteReferences(bases=("https://example.com/schemas/",), fetch=lambda _: 1 / 0)
    given = make.operation(parameters=[make.parameter("a", "query", {"$ref": url})])
    (entry,) = openapi_tools(given, remote=remote).report.unusable
    assert "is not fetched" in entry.reason


@pytest.mark.parametrize("given", [lambda _: 1 / 0, lambda _: "{", lambda _: None, {}.__getitem__])
def test_a_fetch_that_fails_is_a_reason(make, given):
    """Whatever the caller's function raises or gives, the operation is reported with it."""
    remote = RemoteReferences(bases=(OTHER,), fetch=given)
    document = make.operation(parameters=[make.parameter("a", "query", {"$ref": f"{OTHER}#/A"})])
    (entry,) = openapi_tools(document, remote=remote).report.unusable
    assert "could not be read" in entry.reason or "points nowhere" in entry.reason


def test_definitions_are_kept_in_a_store(make):
    """What came of the conversion survives the way to JSON and back with its digest."""
    from agentkit import ToolDefinition

    schema = {"$ref": "#/components/schemas/Node"}
    (tool,) = openapi_tools(
        make.operation(responses=make.answered(schema), components={"schemas": CYCLIC})
    )
    again = ToolDefinition.from_json(tool.definition.to_json())
    assert again.digest == tool.definition.digest


def test_small_schemas_are_kept_before_large_ones(make):
    """Where not all fits, small ones among equally near stay whole, and the others are told."""
    schemas = {
        "Large": {"type": "string", "enum": ["x" * 30_000], "not": {}},
        "Small": {"type": "object", "properties": {"a": {"type": "string"}}},
    }
    properties = {name.lower(): {"$ref": f"#/components/schemas/{name}"} for name in schemas}
    parameters = [make.parameter("q", "query", {"type": "object", "properties": properties})]
    found = openapi_tools(make.operation(parameters=parameters, components={"schemas": schemas}))
    (tool,) = found
    assert tool.definition.parameters_schema["$defs"] == {
        "Small": schemas["Small"],
        "Large": {"title": "Large"},
    }
    (note,) = found.report.mapped[0].notes
    assert (note.code, note.message) == ("parameters_cut", "far schemas that allow anything: Large")
