"""What JSON Schemas declare, also those that contradict themselves or never end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.tools.types.declared import declared_type
from agentkit.tools.types.lattice import ANY, TypeSet

NODE = {
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}},
            "required": ["value", "next"],
        }
    },
    "$ref": "#/$defs/Node",
}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer | null"),
        ({"type": "string", "format": "date-time"}, "string datetime"),
        ({"type": "string", "format": "whatever"}, "string"),
        ({"enum": ["a", "b"]}, 'string in {"a", "b"}'),
        ({"const": 3}, "integer in {3}"),
        ({"type": "number", "enum": [1, 2.5]}, "integer in {1} | number in {2.5}"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "integer | string"),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "integer"),
        ({"type": "array", "items": {"type": "number"}}, "array of (number)"),
        ({"type": "array"}, "array"),
        ({"items": {"type": "string"}}, "array of (string)"),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, "object with a"),
        ({"type": "object", "properties": {"a": {}}}, "object"),
    ],
)
def test_a_schema_is_read(schema, words):
    """Types, unions, lists, objects, enums and formats become types."""
    assert str(declared_type(schema)) == words


@pytest.mark.parametrize(
    "schema",
    [{}, True, None, "string", {"type": "any"}, {"type": ["string", "tuple"]}, {"$ref": "#/nope"}],
)
def test_what_is_not_declared_is_anything(schema):
    """No type, an unknown one, or something that is no schema declares nothing."""
    assert declared_type(schema) is ANY or declared_type(schema) == ANY


def test_a_cyclic_reference_ends():
    """A list that refers to itself is read as far as it is known."""
    node = declared_type(NODE)
    (only,) = node.alternatives
    assert [name for name, _ in only.fields] == ["next", "value"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}] * 30},
        {"type": "array", "items": {"$ref": "#"}},
    ],
)
def test_references_in_circles_end(schema):
    """However a schema refers to itself, reading it ends."""
    assert declared_type(schema) is not None


def test_references_that_multiply_end_soon():
    """Twenty doublings would be a million parts; only the first few hundred are read."""
    levels = {f"n{i}": {"anyOf": [{"$ref": f"#/$defs/n{i + 1}"}] * 2} for i in range(20)}
    schema = {"$defs": {**levels, "n20": {"type": "string"}}, "$ref": "#/$defs/n0"}
    assert declared_type(schema) == ANY


def test_contradictions_are_read_as_either():
    """An enum of texts under ``type: integer`` forbids nothing: both are allowed."""
    assert declared_type({"type": "integer", "enum": ["1"]}) == TypeSet.of(
        "integer"
    ) | TypeSet.one_of(["1"])


def test_results_have_all_their_fields_and_inputs_those_required():
    """A tool gives what it declares; a caller need not give what is optional."""
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    assert str(declared_type(schema)) == "object with a"
    assert str(declared_type(schema, is_result=True)) == "object with a, b"


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda parts: st.one_of(
        st.lists(parts, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "enum", "items", "properties", "anyOf", "$ref", "required"]),
            parts,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(schema=_JSON)
def test_no_schema_is_too_odd(schema):
    """Any JSON at all gives a type."""
    assert isinstance(declared_type(schema), TypeSet)
