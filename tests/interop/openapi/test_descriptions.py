"""API descriptions: documents as they are read, and what becomes of their operations."""

import json
import sys

import pytest
from jsonschema import Draft202012Validator
from support.cost import check_cost

from agentkit.errors import DefinitionError, MissingExtraError, UsageError
from agentkit.interop.openapi import openapi_tools

YAML = """\
openapi: 3.1.0
info: {title: Pets, version: 2024-01-01}
servers:
  - url: https://pets.example.com
paths:
  /pets/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}, description: Which.}
    get:
      operationId: on
      parameters:
        - {name: kind, in: query, schema: {enum: [yes, 1:30, 012, 2024-01-01, 1e3, ~, True]}}
"""


def test_yaml_is_read_as_json_would_be(tmp_path):
    """Keys are text, and what YAML 1.1 takes for dates, times and yes stays text."""
    path = tmp_path / "pets.yaml"
    path.write_text(YAML)
    found = openapi_tools(path)
    (tool,) = found
    assert tool.name == "on"
    assert found.report.version == "2024-01-01"
    assert found.report.reference == str(path)
    assert tool.definition.description.parameters == {"id": "Which."}
    members = tool.definition.signature.properties["kind"]["enum"]
    assert members == ["yes", "1:30", "012", "2024-01-01", 1000.0, None, True]
    assert openapi_tools(str(path))["on"].definition == tool.definition
    assert openapi_tools(b"\xef\xbb\xbf" + YAML.encode())["on"].definition.digest


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("openapi: 3.0.0\na: &a [*a]", "stands for another part of the file"),
        ("openapi: 3.0.0\na: !!python/object/apply:os.system [ls]", "neither JSON nor YAML"),
        ("openapi: 3.0.0\na: !!timestamp zz", "neither JSON nor YAML"),
        ("%TAG !a! tag:x,1:\n---\nopenapi: 3.0.0", "line 1: no line may begin with '%'"),
        ('{"openapi": "3.0.0", }x', "is not JSON"),
        ("[1]\n", "it is a list"),
        ("{}", "no key 'openapi'"),
        (b"\xff\xfe\n", "not UTF-8"),
        ("[" * 100_000, "nested too deeply|not JSON"),
        ('{"openapi": "3.0.0", "x": ' + "[" * 300 + "]" * 300 + "}", "deeper than 200"),
        ({"swagger": "2.0", "paths": {}}, "Swagger 2.0, not OpenAPI 3; convert it first"),
        ({"openapi": "4.0.0"}, "'4.0.0' is not supported"),
        ({"openapi": "3.0.0", "paths": []}, "its 'paths' is a list"),
    ],
)
def test_what_is_no_description_is_refused(given, why):
    """The message says what is wrong and, for Swagger, what to do."""
    with pytest.raises(DefinitionError, match=why):
        openapi_tools(given)


def test_yaml_without_its_extra_says_what_to_install(monkeypatch, make):
    """JSON needs nothing; for YAML the error names the pip line."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r'pip install "agentkit-evolve\[openapi\]"'):
        openapi_tools(YAML)
    assert len(openapi_tools(json.dumps(make.operation()))) == 1


BAD_OPERATIONS = {
    "no object": 7,
    "no parameter": {"parameters": [3]},
    "no name": {"parameters": [{"in": "query"}]},
    "nowhere": {"parameters": [{"$ref": "#/components/parameters/none"}]},
    "an anchor": {"parameters": [{"name": "a", "in": "query", "schema": {"$ref": "#here"}}]},
    "no body": {"requestBody": []},
    "no security": {"security": {"a": []}},
    "no server": {"servers": [{"url": "gopher://x"}]},
    "another server": {"servers": [{"url": "https://upload.example.com"}]},
    "the whole document": {"parameters": [{"name": "a", "in": "query", "schema": {"$ref": "#"}}]},
}


@pytest.mark.parametrize("kind", BAD_OPERATIONS)
def test_a_bad_operation_does_not_spoil_the_others(make, kind):
    """It is in the report with a reason and a place; the good one is a tool."""
    good = {"operationId": "good"}
    found = openapi_tools(make.document({"/x": {"post": BAD_OPERATIONS[kind], "get": good}}))
    assert [tool.name for tool in found] == ["good"]
    (entry,) = found.report.unusable
    assert (entry.label, entry.pointer) == ("POST /x", "/paths/~1x/post")
    assert len(entry.reason) > 10


BIG = {"type": "object", "properties": {f"p{at}": {"enum": ["a", "b"]} for at in range(140)}}


def tree(levels):
    """``allOf`` of ``allOf``: each level is twice as wide."""
    return {"allOf": [tree(levels - 1)] * 2} if levels else {"properties": {"a": {}}}


def chain(links):
    """Each definition needs the two behind it."""
    there = "#/components/schemas/C"
    found = {
        f"C{at}": {"allOf": [{"$ref": f"{there}{at + 1}"}, {"$ref": f"{there}{at + 2}"}]}
        for at in range(links)
    }
    return found | {f"C{links}": {}, f"C{links + 1}": {}}


def bodies(count, name="B"):
    """Operations whose body is one shared schema."""
    schema = {"$ref": f"#/components/schemas/{name}"}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {f"/p{at}": {"post": {"requestBody": body}} for at in range(count)}


def queries(count):
    """Parameters of one operation."""
    return [{"name": f"p{at}", "in": "query", "schema": {}} for at in range(count)]


SHARED = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/B"}}}}
HOSTILE = {
    "a long camel-case name": ({"/x": {"get": {"operationId": "aB" * 20_000}}}, {}),
    "equal names": ({f"/p{at}": {"get": {"operationId": "it"}} for at in range(3_000)}, {}),
    "one big body": (bodies(1_500), {"B": BIG}),
    "one big answer": (
        {f"/p{at}": {"get": {"responses": {"200": SHARED}}} for at in range(1_500)},
        {"B": BIG},
    ),
    "a tree": (bodies(200), {"B": tree(10)}),
    "a chain": (bodies(200, "C0"), chain(1_000)),
    "many parameters": ({"/x": {"get": {"parameters": queries(20_000)}}}, {}),
    "one path item many times": (
        {"/x": {"parameters": queries(190), "get": {}}}
        | {f"/y{at}": {"$ref": "#/paths/~1x"} for at in range(1_500)},
        {},
    ),
    "a long summary many times": (
        {"/x": {"get": {"summary": "word " * 20_000}}}
        | {f"/y{at}": {"$ref": "#/paths/~1x"} for at in range(1_500)},
        {},
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_description_ends_soon(make, kind):
    """Counts, names and what is made in all are bounded; what is not made has its reason."""
    paths, schemas = HOSTILE[kind]
    text = json.dumps(make.document(paths, schemas=schemas))
    report = openapi_tools(text).report
    assert len(report.operations) == len(paths)
    assert all(len(entry.reason) < 300 and entry.reason for entry in report.unusable)
    assert bool(report.unusable) or kind in {"a long camel-case name", "a tree"}
    check_cost(lambda: openapi_tools(text), len(text))


@pytest.mark.parametrize(
    "path", ["/../../admin", "/a/%2e%2E/b", "/..;/admin", "/a/./b", "/..\\admin", "/%2e%2e%2fadmin"]
)
def test_a_path_does_not_leave_that_of_the_server(make, path):
    """Whoever names a server means what lies below it; segments of dots would lead out."""
    document = make.document({path: {"get": {}}, "/..a/b..": {"get": {}}})
    report = openapi_tools(document, server="https://intranet.example/v1/public").report
    assert [entry.path for entry in report.unusable] == [path]
    assert "leads out of the server's own" in report.unusable[0].reason


def only(found):
    """The definition of the one tool."""
    assert [entry.reason for entry in found.report.unusable] == []
    (tool,) = found.tools
    Draft202012Validator.check_schema(tool.definition.signature.parameters)
    return tool.definition


def test_words_and_origin_come_from_the_operation(make):
    """Summary and description are the tool's words, the origin is a JSON pointer."""
    definition = only(
        openapi_tools(
            make.operation(
                path="/a/{b}",
                parameters=[make.parameter("b", "path", description=" Which. ")],
                summary="Look.",
                description="Look closely.",
                tags=["eyes"],
            ),
            reference="api.json",
        )
    )
    assert definition.description.summary == "Look.\n\nLook closely."
    assert definition.description.tags == ("eyes",)
    assert definition.description.parameters == {"b": "Which."}
    assert definition.origin.kind == "openapi"
    assert definition.origin.reference == "api.json#/paths/~1a~1{b}/get"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("issues/list-for-repo", "issues_list_for_repo"),
        (None, "get_pets_petId"),
        ("import", "import_"),
        ("é", "get_pets_petId"),
        ("a" * 80, "a" * 31 + "_" + "a" * 32),
    ],
)
def test_names_are_mended(make, given, name):
    """A tool's name is one that providers take and composites can call."""
    item = {"get": {"operationId": given, "parameters": [make.parameter("petId", "path")]}}
    found = openapi_tools(make.document({"/pets/{petId}": item}))
    assert [tool.name for tool in found] == [name]
    original = only(found).origin.original_name
    assert original == (given if isinstance(given, str) and given != name else None)


def test_parameters_of_the_path_are_merged(make):
    """An operation has the parameters of its path, and its own replace those of the same key."""
    item = {
        "parameters": [
            make.parameter("id", "path"),
            make.parameter("q", "query", {"type": "string"}),
            {"$ref": "#/components/parameters/page"},
        ],
        "get": {
            "operationId": "it",
            "parameters": [make.parameter("q", "query", {"type": "number"})],
        },
    }
    page = make.parameter("page", "query", {"type": "integer"})
    definition = only(openapi_tools(make.document({"/x/{id}": item}, parameters={"page": page})))
    properties = definition.signature.properties
    assert list(properties) == ["id", "q", "page"]
    assert properties["q"] == {"type": "number"}
    assert definition.signature.required == ("id",)
    assert definition.signature.parameters["additionalProperties"] is False


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}},
        {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "string"}]},
        {"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1},
        {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        {"type": "object", "properties": {"a": {}}, "required": ["b"]},
        {"type": "object"},
        {},
    ],
)
def test_a_body_with_rules_of_its_own_stays_together(make, schema):
    """Nothing that a body's schema says is lost by spreading it over arguments."""
    content = {"application/json": {"schema": schema}}
    body = {"required": True, "content": content, "description": "All."}
    definition = only(openapi_tools(make.operation("post", requestBody=body)))
    assert list(definition.signature.properties) == ["body"]
    assert definition.signature.required == ("body",)
    assert definition.description.parameters["body"] == "All."


@pytest.mark.parametrize("place", ["query", "header"])
def test_a_parameter_that_carries_a_key_is_no_argument(make, place):
    """Descriptions often list the key among the parameters; a model never fills it."""
    scheme = {"type": "apiKey", "in": place, "name": "key"}
    given = make.operation(
        parameters=[make.parameter("key", place), make.parameter("a", "query")],
        security=[{"it": []}],
        components={"securitySchemes": {"it": scheme}},
    )
    found = openapi_tools(given)
    assert list(only(found).signature.properties) == ["a"]
    (note,) = found.report.operations[0].notes
    assert note == f"the {place} parameter key carries a key, which comes from the environment"


@pytest.mark.parametrize(
    ("method", "effects", "asks"),
    [
        ("get", {"reads": True, "writes": False, "idempotent": True, "open_world": True}, False),
        ("head", {"reads": True, "writes": False, "idempotent": True, "open_world": True}, False),
        ("post", {"writes": True, "idempotent": False, "open_world": True}, False),
        ("put", {"writes": True, "idempotent": True, "open_world": True}, False),
        ("patch", {"writes": True, "idempotent": False, "open_world": True}, False),
        (
            "delete",
            {"writes": True, "destructive": True, "idempotent": True, "open_world": True},
            True,
        ),
    ],
)
def test_effects_come_from_the_method(make, method, effects, asks):
    """HTTP says what methods do, so that deletions wait for a person."""
    (tool,) = openapi_tools(make.operation(method))
    assert tool.definition.signature.effects.to_json() == effects
    assert tool.needs_approval is asks


def test_deprecated_and_unselected_operations_are_reported(make):
    """Each operation is in the report once, whether or not it became a tool."""
    paths = {
        "/old": {"get": {"operationId": "old", "deprecated": True, "tags": ["a"]}},
        "/new": {"get": {"operationId": "new", "tags": ["a"]}, "post": {"tags": ["b"]}},
    }
    given = make.document(paths)
    statuses = {e.label: e.status for e in openapi_tools(given).report.operations}
    assert statuses == {"GET /old": "deprecated", "GET /new": "mapped", "POST /new": "mapped"}
    assert [tool.name for tool in openapi_tools(given, operations=["old"])] == ["old"]
    assert [tool.name for tool in openapi_tools(given, tags=["a"])] == ["new"]
    chosen = openapi_tools(given, operations=["POST /new"])
    assert [tool.name for tool in chosen] == ["post_new"]
    assert len([e for e in chosen.report.operations if e.status == "unselected"]) == 2
    with pytest.raises(UsageError, match="no operation 'GET /nwe'"):
        openapi_tools(given, operations=["GET /nwe"])


def test_a_header_is_an_argument_where_somebody_named_it(make):
    """A header can change method, address, user or framing of a call; few names cannot."""
    barred = ["Authorization", "Host", "Cookie", "Content_Length", "Transfer-Encoding", "X_Key"]
    named = ["X-HTTP-Method-Override", "X-Original-URL", "X-Forwarded-Host", "Forwarded", "X-Mine"]
    parameters = [make.parameter(name, "header") for name in [*barred, *named, "If-Match"]]
    given = make.operation(
        parameters=parameters,
        security=[{"key": []}],
        components={
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-key"}}
        },
    )
    found = openapi_tools(given)
    assert list(only(found).signature.properties) == ["If_Match"]
    assert sum("left to a model" in note for note in found.report.operations[0].notes) == 10
    chosen = openapi_tools(given, header_arguments=["x-mine", "Host", "Content_Length", "X_Key"])
    assert list(only(chosen).signature.properties) == ["X_Mine", "If_Match"]


SERVERS = [
    {"url": "https://{region}.example.com/v1/", "variables": {"region": {"default": "eu"}}},
    {"url": "https://b.example.com"},
]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"server": "ftp://a"}, "not an http or https URL"),
        ({"server": "https://me:secret@a"}, "with a user, password"),
        ({"server": "https://a?x=1"}, "query or fragment"),
    ],
)
def test_a_server_that_can_not_be_is_refused(make, options, why):
    """The caller's mistake is told at once."""
    with pytest.raises(UsageError, match=why):
        openapi_tools(make.operation() | {"servers": SERVERS}, **options)


@pytest.mark.parametrize(
    ("said", "url"),
    [({"servers": [{"url": "/v3"}]}, "https://a.example.com/v3"), ({}, "https://a.example.com")],
)
def test_relative_servers_start_from_the_documents_url(make, said, url):
    """A relative server, or none as FastAPI writes it, needs the document's URL or the caller's."""
    given = {name: part for name, part in make.operation().items() if name != "servers"} | said
    assert "names no absolute server" in openapi_tools(given).report.notes[0]
    found = openapi_tools(given, reference="https://a.example.com/docs/openapi.json")
    assert found.report.server == url
