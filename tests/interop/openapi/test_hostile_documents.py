"""Descriptions that ask for far more than they say end soon, with a reason."""

from __future__ import annotations

import json

import pytest
from support.cost import check_cost

from agentkit.interop.openapi import openapi_tools

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
    assert bool(report.unusable) or kind == "a long camel-case name"
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
    from support.openapi_documents import large_openapi_document

    report = openapi_tools(json.dumps(large_openapi_document(1000))).report
    assert {entry.status for entry in report.operations} == {"mapped", "deprecated"}
    assert report.server == "https://eu.example.com/v1"
