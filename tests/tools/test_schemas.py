"""Patterns, formats and references; and schemas from strangers end within a bound of steps."""

from __future__ import annotations

import asyncio
import random
import re
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

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
from agentkit.tools.patterns import (
    FORMAT_EXAMPLES,
    FORMATS,
    anchored,
    pattern_holds,
    why_unsafe,
    why_unusable,
)
from agentkit.tools.schema import ANY_TYPE, allowed_types, resolve_local
from agentkit.tools.schema_validator import fits, schema_errors
from agentkit.tools.sources.dialects import schema_fault

# --- patterns, formats, references ----------------------------------------------------------------

GOOD = {
    "date": ["2024-02-29"],
    "date-time": ["2026-05-31T12:00:00Z", "2026-05-31t12:00:00+02:00", "2026-05-31 12:00"],
    "email": ["a@b", "ada.l@example.org"],
    "time": ["14:30", "14:30:00Z", "23:59:59.123456+01:00"],
    "uri": ["https://example.org/a?b#c", "mailto:a@b", "urn:isbn:1"],
    "uuid": ["123E4567-e89b-12d3-a456-426614174000"],
}
BAD = {
    "date": ["2023-02-29", "20240229", "2024-2-9", "tomorrow", "2024-W01-1", "\uff12024-01-01"],
    "date-time": ["2026-05-31", "2026-05-31T25:00:00", "now"],
    "email": ["a", "@b", "a@", "a b@c", "a@b@c"],
    "time": ["24:00", "14", "2pm"],
    "uri": ["example.org", "//a", "http:// a", ""],
    "uuid": ["123e4567", "123e4567e89b12d3a456426614174000"],
}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_formats(name) -> None:
    """Each format takes its own values, its example among them, and refuses others."""
    assert all(map(FORMATS[name], [FORMAT_EXAMPLES[name], *GOOD[name]]))
    assert not any(map(FORMATS[name], BAD[name]))


@pytest.mark.parametrize(
    "pattern",
    ["^(a|a)*$", r"^(\w+\s?)*$", "(.*a){20}$"],
)
def test_patterns_that_explode_elsewhere_are_matched_at_once(pattern) -> None:
    """What takes a backtracking engine longer than the world has stood is just an answer."""
    assert not pattern_holds(f"^(?:{pattern})$", "a" * 5_000 + "!")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)b", "look-around"),
        (r"(a)\1", "back-references"),
        ("(", "not a regular expression"),
        ("a++", "not a regular expression"),
        ("((a{100}){100}){100}", "too large"),
        (r"\p{L}{5000}", "too large"),
    ],
)
def test_patterns_that_have_no_bound_are_refused_with_a_reason(pattern, why) -> None:
    """A pattern is matched in linear time, or its reader is told why it is not."""
    assert why in why_unusable(pattern)
    with pytest.raises(ValueError, match=why):
        pattern_holds(pattern, "a")


@pytest.mark.parametrize(
    ("pattern", "found", "missing"),
    [
        (r"^\d$", "7", "\u0663"),
        (r"^\w+$", "a_1", "\u00e9"),
        (r"^[^\w]$", "-", "a"),
        ("^a$", "a", "a\n"),
        (r"^\p{Lu}$", "\u00c9", "\u00e9"),
        ("^(?<year>a)$", "a", "b"),
        ("^[a&&b]+$", "a&b", "c"),
        ("^a{,3}$", "aa", "aaaa"),
        ("^.{1,4000}$", "a" * 4_000, "a" * 4_001),
    ],
)
def test_patterns_mean_what_json_schema_says(pattern, found, missing) -> None:
    """Classes are ASCII, ``$`` is the end, and brackets and braces stand for themselves."""
    assert pattern_holds(pattern, found)
    assert not pattern_holds(pattern, missing)


DOCUMENT = {
    "$defs": {"a/b": {"type": "integer"}, "c~d": {}, "e f": {"x": 1}},
    "anyOf": [{"$ref": "#/$defs/a~1b"}, {"not": {"$ref": "#other"}}],
    "properties": {"$ref": {"default": {"$ref": "#/in/data"}}, "default": {"$ref": "#"}},
}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", DOCUMENT),
        ("#/$defs/a~1b", {"type": "integer"}),
        ("#/$defs/c~0d", {}),
        ("#/$defs/e%20f/x", 1),
        ("#/anyOf/2", None),
        ("https://example.org/#/$defs", None),
    ],
)
def test_references_are_resolved_inside_the_document(reference, target) -> None:
    """JSON pointers are followed; anything else is not resolved."""
    assert resolve_local(DOCUMENT, reference) == target


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": ["integer", "null"]}, "integer null"),
        ({"type": ["integer", "number"]}, "number"),
        ({"enum": ["a", 1, 2.5]}, "number string"),
        ({"type": "number", "enum": [1, 2]}, "integer"),
        ({"anyOf": [{"type": "integer"}, {"const": "all"}]}, "integer string"),
        ({"allOf": [{"type": ["integer", "string"]}, {"type": "number"}]}, "integer"),
        ({"allOf": [{"type": "string"}, {"type": "boolean"}]}, "boolean string"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"items": {}}}}, "array"),
    ],
)
def test_the_types_that_a_schema_allows(schema, types) -> None:
    """Types, values, alternatives and references count; an integer is a number as well."""
    assert " ".join(sorted(allowed_types(schema))) == types


def test_what_is_not_declared_is_of_any_type() -> None:
    """No type, an unknown one, no schema, or references that multiply beyond the bound."""
    levels = {f"n{i}": {"anyOf": [{"$ref": f"#/$defs/n{i + 1}"}] * 2} for i in range(20)}
    doubling = {"$defs": {**levels, "n20": {"type": "string"}}, "$ref": "#/$defs/n0"}
    for schema in ({}, True, None, {"type": "any"}, {"type": ["string", "tuple"]}, doubling):
        assert allowed_types(schema) == ANY_TYPE


# --- patterns of rules ----------------------------------------------------------------------------

SAFE = [
    "[A-Z]{2}",
    "EUR|USD",
    "[a-z]{1,20}(-[a-z]{1,20}){0,2}",
    r"\$\d{1,6}\.\d\d",
    "[$^]+",
    "",
    "(a|ab)*c",
]
UNSAFE = {
    "(a{0,200}){200}": "too large",
    "(?i)abc": "not every reader",
    "(?=a)a": "not every reader",
    r"(a)\1": "not every reader",
    r"\Aa\Z": "not every reader",
    "a{,3}": "not every reader",
    "[0||]": "not every reader",
    "[": "not a regular expression",
    "x" * 201: "201 characters",
}


@pytest.mark.parametrize(("pattern", "why"), UNSAFE.items())
def test_others_are_refused_with_the_reason(pattern, why) -> None:
    """What could take long, or means something else to another reader, is no pattern of a rule."""
    assert why in why_unsafe(pattern) or "not every reader" in why_unsafe(pattern)


@given(st.sampled_from([p for p in SAFE if p]), st.text("AZazEURSD$1.-é^", max_size=6))
def test_the_anchored_pattern_says_the_same_to_a_search(pattern, text) -> None:
    """The form for JSON Schema, which searches, matches what the rule matches as a whole."""
    whole = re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text) is not None
    assert pattern_holds(anchored(pattern), text) == whole
    assert (re.search(anchored(pattern), text) is not None) == whole


@given(st.text("a+*?{},()|[]0129\\d^$-", max_size=14))
@example("[0||]")  # Python warns of it as of an operation on sets
def test_any_text_is_judged(pattern) -> None:
    """Whatever is given as a pattern, there is an answer; a safe one can be applied at once."""
    if not why_unsafe(pattern):
        pattern_holds(anchored(pattern), "a" * 5_000)
        re.compile(anchored(pattern))


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


def test_a_schema_with_many_large_patterns_is_refused() -> None:
    """Compiling patterns takes time too: their size is counted before any is compiled."""
    properties = {f"x{at}": {"type": "string", "pattern": f".{{1,{900 + at}}}"} for at in range(50)}
    with pytest.raises(DefinitionError, match="its 50 patterns are too large"):
        definition_from_json({"name": "x", "inputSchema": {"properties": properties}})


def test_keywords_that_say_nothing_usable_are_no_answer() -> None:
    """A keyword of the wrong type leaves it open; equal items are those that are equal as JSON."""
    for broken in ({"minimum": True}, {"minimum": "1"}, {"enum": 1}, {"allOf": {}}):
        assert fits(1, broken) is None
    distinct = {"uniqueItems": True}
    assert (fits([1, "1", True], distinct), fits([1, 1.0], distinct)) == (True, False)


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
