"""Whatever a document holds: it is imported, and each operation is a tool or in the report."""

import copy
import json

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator
from support.openapi_documents import large_openapi_document

from agentkit import Library, open_store
from agentkit.interop.openapi import openapi_tools
from agentkit.interop.openapi.documents import METHODS
from agentkit.library import LibraryChange
from agentkit.tools.sources import normalise_schema

junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
    | st.sampled_from(["#/components/schemas/customer", "#/nowhere", "https://a/b", "object", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "$ref",
                    "type",
                    "properties",
                    "items",
                    "allOf",
                    "enum",
                    "in",
                    "name",
                    "schema",
                    "get",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
BASE = large_openapi_document(10, seed=3)


def places(value, path=()):
    """Every place in a document, the root left out."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


PLACES = [
    path for path in places(BASE) if path[0] in {"paths", "components", "servers", "security"}
]
INSIDE = [path for path in PLACES if len(path) > 1]


def changed(changes):
    """The base document with parts replaced."""
    document = copy.deepcopy(BASE)
    for path, value in changes:
        part = document
        try:
            for step in path[:-1]:
                part = part[step]
            part[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took that place away
    return document


def written(document):
    """Method and path of each operation as a reader finds them, those that tools can have."""
    return [
        f"{method.upper()} {path}"
        for path, item in document["paths"].items()
        if isinstance(item, dict) and "$ref" not in item
        for method in METHODS
        if method in item
    ]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(INSIDE), junk), min_size=1, max_size=3))
def test_a_damaged_document_is_imported(changes):
    """No part of a document that is replaced by junk raises, and no operation is lost."""
    document = changed(changes)
    if not isinstance(document["paths"], dict):
        return
    servers = document["servers"]
    found = openapi_tools(document, server="https://a.example.com", include_deprecated=True)
    labels = [entry.label for entry in found.report.operations]
    assert len(labels) == len(set(labels))
    assert set(written(document)) <= set(labels)
    by_tool = {entry.tool_name for entry in found.report.operations if entry.status == "mapped"}
    assert by_tool == {tool.name for tool in found}
    assert all(entry.reason for entry in found.report.operations if entry.status != "mapped")
    for tool in found:
        signature = tool.definition.signature
        for schema in (signature.parameters, signature.result or {}):
            assert normalise_schema(schema).changes == ()  # valid, and much quicker to tell
    if found.tools:
        assert len(found.tools[0].definition.digest) == 64
    assert json.dumps(found.report.to_json(), allow_nan=False)
    assert servers is document["servers"]


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_a_thousand_operations(version):
    """A large description is imported whole, its tools are valid and bounded, and a store keeps them."""
    found = openapi_tools(json.dumps(large_openapi_document(1000, version=version)))
    statuses = [entry.status for entry in found.report.operations]
    assert len(statuses) == 1000
    assert set(statuses) == {"mapped", "deprecated"}
    assert found.report.server == "https://eu.example.com/v1"
    for definition in found.definitions[::150]:
        Draft202012Validator.check_schema(definition.signature.parameters)
        if definition.signature.result is not None:
            Draft202012Validator.check_schema(definition.signature.result)
    assert max(len(json.dumps(each.signature.parameters)) for each in found.definitions) < 40_000
    some = found.definitions[:40]
    store = open_store("memory:")
    store.commit(LibraryChange(proposal_id="one", upserts=some), expected_version=0)
    library = store.load().bind(Library(found.tools[:40]))
    assert all(tool.is_bound for tool in library)
