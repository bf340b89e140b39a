"""Descriptions as files, texts and data; hostile and damaged ones end soon and take nothing with them."""

from __future__ import annotations

import json
import sys

import pytest
from support.cost import check_cost
from support.openapi_documents import large_openapi_document

from agentkit.errors import DefinitionError, MissingExtraError
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
      responses:
        200:
          description: A pet.
          content:
            application/json:
              schema: {enum: [yes, 1:30, 012, 2024-01-01, 1e3, ~, True]}
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
    members = tool.definition.signature.result["enum"]
    assert members == ["yes", "1:30", "012", "2024-01-01", 1000.0, None, True]
    assert openapi_tools(str(path))["on"].definition == tool.definition
    assert openapi_tools(b"\xef\xbb\xbf" + YAML.encode())["on"].definition.digest


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("openapi: 3.0.0\na: &a [*a]", "stands for another part of the file"),
        ("openapi: 3.0.0\na: !!python/object/apply:os.system [ls]", "neither JSON nor YAML"),
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


def test_references_that_multiply_are_refused(make):
    """A body that is held against very many schemas is the reason of its operation alone."""
    paths = bodies(1, "C0") | {"/calm": {"get": {}}}
    report = openapi_tools(make.document(paths, schemas=chain(30))).report
    (entry,) = report.unusable
    assert "hold one value against more than 10,000 schemas" in entry.reason


@pytest.mark.parametrize(
    "path", ["/../../admin", "/a/%2e%2E/b", "/..;/admin", "/a/./b", "/..\\admin", "/%2e%2e%2fadmin"]
)
def test_a_path_does_not_leave_that_of_the_server(make, path):
    """Whoever names a server means what lies below it; segments of dots would lead out."""
    document = make.document({path: {"get": {}}, "/..a/b..": {"get": {}}})
    report = openapi_tools(document, server="https://intranet.example/v1/public").report
    assert [entry.path for entry in report.unusable] == [path]
    assert "leads out of the server's own" in report.unusable[0].reason


def test_a_large_honest_description_is_not_refused(make):
    """A thousand operations of public size become tools that a store can keep."""
    report = openapi_tools(json.dumps(large_openapi_document(1000))).report
    assert {entry.status for entry in report.operations} == {"mapped", "deprecated"}
    assert report.server == "https://eu.example.com/v1"
