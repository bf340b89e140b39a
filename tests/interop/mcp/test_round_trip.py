"""A definition that is listed over MCP and read again has the signature it had."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator
from mcp_types import Tool as WireTool

from agentkit.interop.mcp.listing import RawListing, record_of
from agentkit.interop.mcp.screening import ImportPolicy, Memory, import_listing
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.mcp_record import tool_record

FLAG = st.none() | st.booleans()
EFFECTS = st.builds(
    Effects, reads=FLAG, writes=FLAG, destructive=FLAG, idempotent=FLAG, open_world=FLAG
)
NAME = st.sampled_from(["city", "days", "default", "größe", "order id"])
LEAF = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 1},
        {"enum": ["a", "b", None]},
        {"type": ["number", "null"]},
        {"$ref": "#/$defs/point"},
        {"$ref": "#"},
        {},
    ]
)
SCHEMA = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.dictionaries(NAME, inner, max_size=3).map(
            lambda fields: {"type": "object", "properties": fields}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda options: {"anyOf": options}),
    ),
    max_leaves=4,
)
POINT = {"point": {"type": "object", "properties": {"x": {"type": "number"}}}}


def with_definitions(schema):
    """A schema that holds what its references mean, and one more to itself."""
    if "$ref" not in str(schema):
        return schema
    return {**schema, "$defs": {**POINT, "again": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}


PARAMETERS = st.dictionaries(NAME, SCHEMA, max_size=3).map(
    lambda fields: with_definitions({"type": "object", "properties": fields})
)
RESULT = st.none() | SCHEMA.filter(bool).map(with_definitions)


@settings(max_examples=40)
@given(NAME, PARAMETERS, RESULT, EFFECTS)
def test_signatures_survive(name, parameters, result, effects):
    """Parameters, result and effects come back as they were, when the server is trusted."""
    definition = ToolDefinition.from_schema(
        name, "A tool.", parameters, result=result, effects=effects
    )
    wire = WireTool.model_validate(tool_record(definition), by_name=False)
    policy = ImportPolicy(server="home", new_tools="screen", trust_annotations=True)
    listing = import_listing(RawListing(records=(record_of(wire),)), policy, Memory())
    assert listing.held == ()
    assert listing.tools[0].definition.signature == definition.signature


def test_a_recursive_result_means_the_same_inside_an_object():
    """A list of lists is sent as a field; what it says of itself still says it of the list."""
    nested = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}
    empty = {"type": "object", "properties": {}}
    definition = ToolDefinition.from_schema("nest", "Nested.", empty, result=nested)
    sent = Draft202012Validator(tool_record(definition)["outputSchema"])
    assert sent.is_valid({"result": [1, [2, [3]]]})
    assert not sent.is_valid({"result": [1, [2, ["3"]]]})
    assert not sent.is_valid({"result": [{"result": [1]}]})


@settings(max_examples=30)
@given(EFFECTS)
def test_untrusted_effects_are_only_ever_stricter(effects):
    """Whatever a stranger says, its tool writes, is open to the world, and is not repeated."""
    parameters = {"type": "object", "properties": {}}
    definition = ToolDefinition.from_schema("a", "A tool.", parameters, effects=effects)
    policy = ImportPolicy(server="home", new_tools="screen")
    listing = import_listing(RawListing(records=(tool_record(definition),)), policy, Memory())
    read = listing.tools[0].definition.signature.effects
    assert (read.writes, read.open_world) == (True, True)
    assert read.idempotent is not True
    assert not read.is_read_only
    assert bool(read.destructive) == bool(effects.destructive)
