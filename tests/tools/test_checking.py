"""Arguments against schemas, coercion, and schemas from strangers within bounds."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from support.json_schemas import SCHEMAS, VALUES

from agentkit import Agent, Tool
from agentkit.errors import DefinitionError
from agentkit.messages import ToolCall, ToolFailure
from agentkit.testing import ScriptedModel
from agentkit.tools import (
    ArgumentValidator,
    Signature,
    ToolDefinition,
    UncheckableError,
    canonical_arguments,
    coerce,
    definition_from_json,
    definitions_from_json,
    fits,
)
from agentkit.tools.patterns import (
    FORMAT_EXAMPLES,
    FORMATS,
    anchored,
    pattern_holds,
    why_unsafe,
    why_unusable,
)
from agentkit.tools.schema import allowed_types, parts_at
from agentkit.tools.schema_validator import schema_errors
from agentkit.tools.sources.dialects import schema_fault

# --- sentences ------------------------------------------------------------------------------------

ITEM = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["sku"],
    "additionalProperties": False,
}
CIRCLE = {
    "type": "object",
    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
    "required": ["kind", "radius"],
    "additionalProperties": False,
}
SQUARE = {
    "type": "object",
    "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
    "required": ["kind", "side"],
    "additionalProperties": False,
}
PROPERTIES = {
    "city": {"type": "string", "minLength": 2, "description": "Where."},
    "days": {"type": "integer", "minimum": 1, "maximum": 14},
    "unit": {"enum": ["celsius", "fahrenheit"]},
    "when": {"type": "string", "format": "date"},
    "code": {"type": "string", "pattern": "^[A-Z]{3}$", "maxLength": 3},
    "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "items": {"type": "array", "items": ITEM, "minItems": 1, "maxItems": 2, "uniqueItems": True},
    "shape": {"oneOf": [CIRCLE, SQUARE]},
    "not_empty": {"not": {"const": ""}},
    "either": {"oneOf": [{"type": "integer"}, {"minimum": 3}]},
    "extra": {"type": "object", "minProperties": 1, "propertyNames": {"maxLength": 2}},
    "pair": {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
    "never": False,
}


@pytest.fixture(scope="module")
def validator() -> ArgumentValidator:
    """A tool with a parameter of every kind."""
    schema = {
        "type": "object",
        "properties": PROPERTIES,
        "required": ["city"],
        "additionalProperties": False,
    }
    return ArgumentValidator(ToolDefinition.from_schema("get_weather", "", schema))


@pytest.mark.parametrize(
    ("arguments", "rule", "path", "keyword"),
    [
        ({"days": "3"}, "`days` must be an integer, got the string '3'", "days", "type"),
        ({"city": "x"}, "`city` must have at least 2 characters, got 1", "city", "minLength"),
        (
            {"unit": "Kelvin"},
            "`unit` must be one of 'celsius', 'fahrenheit', got the string 'Kelvin'",
            "unit",
            "enum",
        ),
        (
            {"code": "ab"},
            "`code` must match the pattern ^[A-Z]{3}$, got the string 'ab'",
            "code",
            "pattern",
        ),
        ({"limit": "x"}, "`limit` must be an integer or null, got the string 'x'", "limit", "anyOf"),
        (
            {"items": [{"sku": "a"}, {"sku": "a"}]},
            "`items` must not hold an item twice",
            "items",
            "uniqueItems",
        ),
        (
            {"shape": {"kind": "circle", "radius": "1"}},
            "`shape.radius` must be a number, got the string '1'",
            "shape.radius",
            "type",
        ),
        (
            {"shape": {"kind": "hexagon"}},
            "`shape.kind` must be one of 'circle', 'square', got the string 'hexagon'",
            "shape.kind",
            "enum",
        ),
        ({"not_empty": ""}, "`not_empty` must not be like this, got the string ''", "not_empty", "not"),
        (
            {"either": 4},
            "`either` must fit exactly one of the alternatives, not several, got the number 4",
            "either",
            "oneOf",
        ),
        ({"extra": {}}, "`extra` must have at least 1 field, got 0", "extra", "minProperties"),
        ({"pair": [1, 2]}, "`pair[1]` must be a string, got the number 2", "pair[1]", "type"),
        ({"never": 1}, "`never` must be left out, got the number 1", "never", ""),
    ],
)  # fmt: skip
def test_sentences(validator: ArgumentValidator, arguments, rule, path, keyword) -> None:
    """The sentence names the argument, what it must be and what was got."""
    (problem,) = validator.check({"city": "Rome"} | arguments)
    assert problem.rule == rule
    assert (problem.path, problem.cause) == (path, keyword)


@pytest.mark.parametrize(
    ("arguments", "rule", "nearest"),
    [
        (
            {"city": "Rome", "dayz": 3},
            "`dayz` is not an argument of get_weather; did you mean `days`?",
            ("days",),
        ),
        (
            {"town": "Rome"},
            "`town` is not an argument of get_weather; did you mean `city`?",
            ("city",),
        ),
        (
            {"city": "Rome", "items": [{"sku": "a", "COUNT": 1}]},
            "`items[0].COUNT` is not a field of `items[0]`; did you mean `count`?",
            ("count",),
        ),
    ],
)
def test_unknown_argument_names_what_was_meant(
    validator: ArgumentValidator, arguments, rule, nearest
) -> None:
    """A misspelt argument, or the only one in the place of the only missing one, is explained."""
    problem = validator.check(arguments)[0]
    assert (problem.rule, problem.nearest) == (rule, nearest)
    assert problem.cause == "additionalProperties"


def test_a_clear_slip_is_corrected_only_when_the_call_is_right_then(
    validator: ArgumentValidator,
) -> None:
    """Text for a number runs as a number; beside another fault the call is refused for that."""
    assert validator.runnable({"city": "Rome", "days": "3"}) == {"city": "Rome", "days": 3}
    refused = validator.runnable({"city": "Rome", "days": "3", "when": "tomorrow"})
    assert isinstance(refused, ToolFailure)


# --- broken schemas, remote references, deep values -----------------------------------------------


def validator_of(**properties) -> ArgumentValidator:
    """A validator of a tool with these properties."""
    return ArgumentValidator(
        ToolDefinition.from_schema("probe", "", {"type": "object", "properties": properties})
    )


@pytest.mark.parametrize(
    ("schema", "fragment"),
    [
        ({"type": "objekt"}, "`properties.x.type` must be one of"),
        ({"pattern": "("}, "pattern"),
        ({"$ref": "#/$defs/missing"}, "'#/$defs/missing' points nowhere"),
    ],
)
def test_broken_schema_is_found_when_prepared(schema, fragment) -> None:
    """A schema that cannot be used is refused before any call, naming tool and place."""
    with pytest.raises(DefinitionError) as caught:
        validator_of(x=schema).prepare()
    assert caught.value.tool_name == "probe"
    assert fragment in str(caught.value)
    with pytest.raises(DefinitionError):
        validator_of(x=schema).check({"x": 1})


def test_remote_reference_never_touches_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote reference is a problem in words; no connection is opened for it."""

    def refuse(*args, **kwargs):
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    validator = validator_of(x={"$ref": "https://example.org/schema.json"}, y={"type": "integer"})
    validator.prepare()
    assert validator.check({"y": 1}) == ()
    (problem,) = validator.check({"x": 1})
    assert "'https://example.org/schema.json', which is not part of it and is never fetched" in (
        problem.rule
    )


# --- the quick check ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def formats() -> FormatChecker:
    """A checker of our own formats."""
    checker = FormatChecker(formats=())
    for name, holds in FORMATS.items():
        checker.checks(name)(lambda value, holds=holds: not isinstance(value, str) or holds(value))
    return checker


@given(value=VALUES, schema=SCHEMAS, a=SCHEMAS, b=st.sampled_from([True, {"type": "integer"}]))
def test_sure_answers_equal_jsonschema(formats: FormatChecker, value, schema, a, b) -> None:
    """Whenever the quick check says yes or no, the full validator says the same."""
    document = {"$defs": {"A": {"properties": {"a": a}}, "B": b}}
    document |= schema if isinstance(schema, dict) else {"allOf": [schema]}
    quick = fits(value, document)
    if quick is not None:
        assert quick == Draft202012Validator(document, format_checker=formats).is_valid(value)


# --- coercion -------------------------------------------------------------------------------------

INTEGER, NUMBER, BOOLEAN = {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
UNITS = {"enum": ["celsius", "kelvin"]}


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("3", INTEGER, 3),
        ("3.0", INTEGER, 3),
        ("2.5", NUMBER, 2.5),
        ("1e3", INTEGER, 1000),
        ("true", BOOLEAN, True),
        ("None", {"type": ["integer", "null"]}, None),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('{"a": "1"}', {"type": "object", "properties": {"a": INTEGER}}, {"a": 1}),
        ("Kelvin", UNITS, "kelvin"),
        ("KELVIN", {"const": "kelvin"}, "kelvin"),
        ("new  york", {"enum": ["New York"]}, "New York"),
        (36, {"enum": ["36", "48"]}, "36"),
        (["1", 2], {"items": INTEGER}, [1, 2]),
        (["1", "1"], {"prefixItems": [INTEGER], "items": {"type": "string"}}, [1, "1"]),
        ("3", {"anyOf": [INTEGER, {"type": "null"}]}, 3),
        ("3", {"allOf": [INTEGER]}, 3),
        ("3", {"$ref": "#/$defs/N", "$defs": {"N": INTEGER}}, 3),
    ],
)
def test_clear_values_are_coerced(value, schema, expected) -> None:
    """Text of numbers, booleans and JSON, and enum members in other case, become what is meant."""
    found = coerce(value, schema)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("three", INTEGER),
        ("3.5", INTEGER),
        ("1_000", INTEGER),
        ("٣", INTEGER),
        ("9" * 5000, INTEGER),
        ("1e999", NUMBER),
        (3.5, INTEGER),
        ("yes", BOOLEAN),
        (3, {"type": "string"}),
        ("[1, 2", {"type": "array"}),
        ("[1e999]", {"type": "array"}),
        ('{"a": 1, "a": 2}', {"type": "object"}),
        ("[" * 100_000, {"type": "array"}),
        ("A", {"enum": ["a ", "a"]}),
        ("3", {"anyOf": [INTEGER, {"type": "string"}]}),
        ("3", "nonsense"),
        ("3", {"$ref": "#/$defs/missing"}),
        (["a"], {"enum": ["a", ["b"]]}),
        ({"name": 1}, {"propertyNames": {"enum": ["NAME"]}}),
        ({"unknown": "3"}, {"properties": {"n": INTEGER}}),
    ],
)
def test_doubtful_values_stay(value, schema) -> None:
    """A value that is fine, or that could mean several things, is returned itself."""
    assert coerce(value, schema) is value


def test_defaults_of_optional_properties_are_filled() -> None:
    """The canonical form has the defaults of absent optional properties, those of references too."""
    schema = {
        "properties": {
            "unit": {"type": "string", "default": "km"},
            "limit": {"type": "integer", "default": "10"},
            "after": {"type": "string", "default": None},
            "city": {"type": "string", "default": "Rome"},
            "where": {"$ref": "#/$defs/Where"},
        },
        "required": ["city"],
        "$defs": {"Where": {"default": {"radius": 5}}},
    }
    filled = {"after": None, "limit": 10, "unit": "km", "where": {"radius": 5}}
    assert canonical_arguments({}, schema) == filled
    assert coerce({}, schema) == {}


@given(VALUES, SCHEMAS, SCHEMAS)
def test_coercion_is_idempotent(value, schema, definition) -> None:
    """Coercing twice gives what coercing once gives, even under contradictory schemas."""
    document = {**schema, "$defs": {"A": definition, "B": INTEGER}}
    once = coerce(value, document)
    assert coerce(once, document) is once


# --- canonical arguments --------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "default": 1},
        "scale": {"type": "number"},
        "unit": {"enum": ["celsius", "kelvin"], "default": "celsius"},
        "after": {"type": "string", "default": None},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}}},
    },
    "required": ["city"],
}


def test_arguments_that_are_nested_too_deeply_have_no_canonical_form() -> None:
    """Hundreds of levels end with a reason, in the value as well as in a default."""
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(UncheckableError, match="nested too deeply"):
        canonical_arguments({"city": deep}, SCHEMA)
    with pytest.raises(UncheckableError, match="nested too deeply"):
        canonical_arguments({}, {"properties": {"x": {"default": deep}}})


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


@pytest.mark.parametrize("pattern", ["^(a|a)*$", r"^(\w+\s?)*$", "(.*a){20}$"])
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


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("x", [{"type": "integer"}, {"type": "string"}]),
        ("list[].x", [{"type": "integer"}]),
        ("tuple[].x", []),
        ("a.b", [{"const": 1}]),
        ("", []),
    ],
)
def test_the_parts_that_a_path_names(path, parts) -> None:
    """Alternatives each count; of a tuple no item is like another; a name may hold a dot."""
    box = {"properties": {"x": {"type": "integer"}}}
    schema = {
        "anyOf": [box, {"properties": {"x": {"type": "string"}}}],
        "properties": {
            "list": {"items": box},
            "tuple": {"prefixItems": [True], "items": box},
            "a.b": {"const": 1},
        },
    }
    assert parts_at(schema, path) == parts


# --- patterns of rules ----------------------------------------------------------------------------

UNSAFE = {
    "(a{0,200}){200}": "too large",
    "(?i)abc": "not every reader",
    r"\Aa\Z": "not every reader",
    "a{,3}": "not every reader",
    "[0||]": "not every reader",
    "x" * 201: "201 characters",
}


@pytest.mark.parametrize(("pattern", "why"), UNSAFE.items())
def test_others_are_refused_with_the_reason(pattern, why) -> None:
    """What could take long, or means something else to another reader, is no pattern of a rule."""
    assert why in why_unsafe(pattern) or "not every reader" in why_unsafe(pattern)


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


def test_parts_that_are_compared_are_counted() -> None:
    """Holding a long list against each of many members costs as many steps as both have parts."""
    with pytest.raises(UncheckableError, match="too expensive"):
        schema_errors([0] * 50_000, {"enum": [[1]] * 20})


def test_schemas_of_schemas_are_bounded() -> None:
    """Whether data are a schema at all is found out within the bound too."""
    assert schema_fault({"items": {}}) == ""
    assert schema_fault({"items": [{}]})
    assert "`properties.x.type` must be one of" in schema_fault({"properties": {"x": {"type": 3}}})
    deep: Any = {}
    for _ in range(5_000):
        deep = {"items": deep}
    assert "nested too deeply" in schema_fault(deep)
    huge = {"anyOf": [{"not": {}} for _ in range(60_000)]}
    assert "too expensive" in schema_fault(huge)


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
