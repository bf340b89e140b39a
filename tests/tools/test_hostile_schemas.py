"""Schemas from strangers end within a bound of steps, whoever walks them and whatever they hold."""

from __future__ import annotations

import asyncio
import random
import time
import tracemalloc
from typing import Any

import pytest

from agentkit import Agent, Library, Tool
from agentkit.errors import DefinitionError
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.tools import (
    ArgumentValidator,
    Signature,
    ToolDefinition,
    UncheckableError,
    coerce,
    definition_from_json,
    definitions_from_json,
)
from agentkit.tools.schema_validator import schema_errors
from agentkit.tools.sources.dialects import schema_fault


def _chain(levels: int, link: Any, end: Any) -> dict[str, Any]:
    """A schema of an object whose ``x`` refers on and on; ``link`` makes a level of the next."""
    parts = {f"d{at}": link({"$ref": f"#/$defs/d{at + 1}"}) for at in range(levels)}
    return {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": {**parts, f"d{levels}": end},
    }


DOUBLING = {
    "allOf": lambda next_: {"allOf": [next_, next_]},
    "anyOf": lambda next_: {"anyOf": [next_, next_]},
    "oneOf": lambda next_: {"oneOf": [next_, next_]},
    "not": lambda next_: {"not": {"allOf": [next_, {"not": next_}]}},
    "if": lambda next_: {"if": next_, "then": next_, "else": next_},
    "dependentSchemas": lambda next_: {"dependentSchemas": {"a": next_, "b": next_}, "allOf": []},
}


@pytest.mark.parametrize("keyword", DOUBLING)
def test_references_that_double_are_refused_where_a_tool_is_imported(keyword) -> None:
    """Twenty-six doublings are counted, not walked: the tool is refused with the reason."""
    schema = _chain(26, DOUBLING[keyword], {"type": "string"})
    with pytest.raises(DefinitionError, match="one value against more than 10,000 schemas"):
        definition_from_json({"name": "x", "inputSchema": schema})
    unread = ToolDefinition(name="x", signature=Signature(parameters=schema))
    with pytest.raises(DefinitionError, match="one value against more than 10,000 schemas"):
        ArgumentValidator(unread).check({"x": {"a": 1, "b": 2}})


@pytest.mark.parametrize("keyword", DOUBLING)
def test_a_validation_ends_with_a_reason(keyword) -> None:
    """Even unread by anybody, such a schema costs a bounded number of steps, and refuses."""
    schema = _chain(26, DOUBLING[keyword], {"type": "integer"})
    value: Any = {"x": {"a": 1, "b": 2}}
    with pytest.raises(UncheckableError, match="too expensive to validate: more than"):
        schema_errors(value, schema, limit=100_000)


def test_long_messages_are_counted() -> None:
    """Thousands of branches that each refuse a large value keep one copy of it."""
    branches = [{"const": number} for number in range(5_000)]
    tracemalloc.start()
    try:
        with pytest.raises(UncheckableError, match="too expensive"):
            schema_errors("x" * 200_000, {"anyOf": branches})
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_patterns_of_names_are_matched_in_linear_time() -> None:
    """What looks at names by pattern uses the engine that ends."""
    schema = {"type": "object", "patternProperties": {"^(a|a)*$": {"type": "integer"}}}
    schema |= {"additionalProperties": False}
    validator = ArgumentValidator(ToolDefinition.from_schema("f", "", {"properties": {}, **schema}))
    assert validator.check({"aaa": 1}) == ()
    assert validator.check({"aaa": "1"})
    assert validator.check({"a" * 5_000 + "!": 1})


def test_a_schema_with_many_large_patterns_is_refused() -> None:
    """Compiling patterns takes time too: their size is counted before any is compiled."""
    properties = {f"x{at}": {"type": "string", "pattern": f".{{1,{900 + at}}}"} for at in range(50)}
    with pytest.raises(DefinitionError, match="its 50 patterns are too large"):
        definition_from_json({"name": "x", "inputSchema": {"properties": properties}})


def test_schemas_of_schemas_are_bounded() -> None:
    """Whether data are a schema at all is found out within the bound too."""
    assert schema_fault({"items": {}}) is None
    assert schema_fault({"items": [{}]})
    assert str(schema_fault({"properties": {"x": {"type": 3}}})).startswith("at properties/x/type")
    deep: Any = {}
    for _ in range(5_000):
        deep = {"items": deep}
    assert "nested too deeply" in str(schema_fault(deep))
    huge = {"anyOf": [{"not": {}} for _ in range(60_000)]}
    assert "too expensive" in str(schema_fault(huge))


async def test_a_hostile_schema_does_not_stop_the_loop() -> None:
    """While arguments are held against such a schema, everything else goes on."""
    part = {"items": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": part}}
    tool = Tool(definition=ToolDefinition.from_schema("f", "", schema), function=lambda x: x)
    deep: Any = "y" * 300_000
    for _ in range(40):
        deep = [deep]
    call = ToolCall(call_id="1", name="f", arguments={"x": deep})
    longest, last = 0.0, time.monotonic()

    async def beat() -> None:
        nonlocal longest, last
        while True:
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()

    heart = asyncio.create_task(beat())
    run = await Agent(ScriptedModel([[call], "done"]), tools=[tool]).run("Go.")
    heart.cancel()
    (result,) = run.episode.results
    assert "cannot be checked" in result.text
    assert longest < 5


NO_SCHEMAS: dict[str, dict[str, Any]] = {
    "#/required": {"required": ["x"]},
    "#/properties/y/const": {"properties": {"y": {"const": None}}},
    "#/x-parts/y": {"x-parts": {"y": {"required": 5, "properties": ["a"]}}},
}


def _referring(reference: str, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        **more,
        "properties": {**more.get("properties", {}), "x": {"$ref": reference}},
    }


@pytest.mark.parametrize("reference", NO_SCHEMAS)
def test_a_reference_to_what_is_no_schema_is_refused(reference) -> None:
    """Where a foreign schema comes in, as arguments or as a result, and where a call is prepared."""
    schema = _referring(reference, NO_SCHEMAS[reference])
    for key in ("inputSchema", "outputSchema"):
        with pytest.raises(DefinitionError, match=f"'{reference}' .* not a schema"):
            definition_from_json({"name": "t", key: schema})
    unread = ToolDefinition(name="t", signature=Signature(parameters=schema))
    with pytest.raises(DefinitionError, match=f"'{reference}' .* not a schema") as refused:
        ArgumentValidator(unread).prepare()
    assert refused.value.tool_name == "t"
    ours = definitions_from_json([unread.to_json()])
    assert f"'{reference}'" in ours.rejected[0].reason


UNFORESEEN: list[dict[str, Any]] = [
    {"properties": {"x": {"$dynamicRef": "#/required"}}, "required": ["x"]},
    {"$id": "http://a/b", "properties": {"x": {"$ref": "b#/required"}}, "required": ["x"]},
]


@pytest.mark.parametrize("schema", UNFORESEEN)
def test_what_a_validator_did_not_expect_refuses_the_call(schema) -> None:
    """A schema that breaks the validator itself costs its call, with a reason, and not the run."""
    definition = definition_from_json({"name": "f", "inputSchema": {"type": "object", **schema}})
    tool = Tool(definition=definition, function=lambda x: x)
    call = ToolCall(call_id="1", name="f", arguments={"x": 1})
    run = Agent(ScriptedModel([[call], "done"]), tools=[tool]).run_sync("Go.")
    (result,) = run.episode.results
    assert "cannot be checked" in result.text
    assert run.output == "done"


ALIKE = ["".join(random.Random(at).sample("ab" * 30, 60)) + str(at) for at in range(400)]
OBJECT_OF_ALIKE = {"properties": {name: {} for name in ALIKE[:200]}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (OBJECT_OF_ALIKE, dict.fromkeys(ALIKE[200:], 1)),
        (
            {"properties": {"a": {"items": OBJECT_OF_ALIKE}}},
            {"a": [{name: 1} for name in ALIKE[200:]]},
        ),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b" * 100_000: 1}),
    ],
    ids=["names", "items", "a long name"],
)
def test_what_looks_alike_is_compared_within_a_bound(schema, arguments):
    """Unknown names and values cost little, however many there are, and messages stay short."""
    validator = ArgumentValidator(ToolDefinition.from_schema("t", "", {"type": "object", **schema}))
    validator.prepare()
    begun = time.process_time()
    problems = validator.check(arguments)
    assert time.process_time() - begun < 0.25
    assert problems
    assert sum(len(problem.rule) for problem in problems) < 100_000


def test_an_unknown_tool_among_thousands_is_compared_within_a_bound():
    """A name that a client made up is held against few of those that look like it."""
    library = Library(ToolDefinition(name=name + str(at)) for name in ALIKE for at in range(25))
    begun = time.process_time()
    assert library.nearest(ALIKE[0] + "x")
    assert library.nearest(ALIKE[0] * 2_000) == ()
    assert time.process_time() - begun < 0.25


def test_a_coercion_ends_soon():
    """Alternatives inside each other, and thousands of slips, cost a bounded number of steps."""
    part: Any = {"type": "integer"}
    for _ in range(12):
        part = {"anyOf": [{"type": "object", "required": ["x"]}, part, part]}
    begun = time.process_time()
    assert coerce(["a"], part) == ["a"]
    wide = {"other": ["b"] * 50_000, "x": "y"}
    assert coerce(wide, {"anyOf": [{"properties": {"x": part}}] * 50}) is wide
    assert coerce(["1"] * 5_000, {"items": {"type": "integer"}}) == [1] * 5_000
    assert time.process_time() - begun < 3
