"""Tools in the formats of providers, and as texts."""

from __future__ import annotations

import ast
import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import DefinitionError, UsageError
from agentkit.evaluation.doctor.provider_rules import PROVIDER_RULES
from agentkit.evaluation.doctor.schemas import parts
from agentkit.interop.export.formats import (
    FORMATS,
    render,
    render_anthropic,
    render_json_schema,
    render_mcp,
    render_openai_chat,
    render_openai_responses,
)
from agentkit.interop.export.gemini import gemini_names, render_gemini
from agentkit.interop.export.rendering import Rendering
from agentkit.interop.export.texts import render_markdown, render_python_stubs
from agentkit.library import Store
from agentkit.messages import UserMessage
from agentkit.models.anthropic_messages import AnthropicCodec
from agentkit.models.base import ModelRequest
from agentkit.testing import sample_library
from agentkit.tools.definition import Effects, Signature
from agentkit.tools.sources.json_records import definitions_from_json

SEVERAL = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def one(parameters: dict[str, Any], name: str = "f") -> ToolDefinition:
    """A tool of these parameters."""
    return ToolDefinition.from_schema(name, "Do it.", parameters)


def with_property(schema: dict[str, Any], *, needed: bool = True) -> ToolDefinition:
    """A tool of one parameter ``x``."""
    required = {"required": ["x"]} if needed else {}
    return one({"type": "object", "properties": {"x": schema}, **required})


def the_property(rendering: Rendering) -> Any:
    """The schema of ``x`` in a rendering of OpenAI."""
    return rendering.value[0]["function"]["parameters"]["properties"]["x"]


@pytest.mark.parametrize("strict", [False, True])
def test_openai_takes_its_tools(strict: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """The types of the official SDK accept both forms of every sample tool."""
    openai_types = pytest.importorskip("openai.types")
    from openai.types.responses import FunctionTool

    for entry in render_openai_chat(sample_library(), strict=strict).value:
        function = entry["function"]
        openai_types.FunctionDefinition.model_validate(function, strict=True)
        assert function.get("strict", False) is strict
    for entry in render_openai_responses(sample_library(), strict=strict).value:
        assert FunctionTool.model_validate(entry, strict=True).strict is strict


def test_strict_schemas_are_what_openai_makes_of_them() -> None:
    """The SDK's own pass over strict schemas finds nothing to change."""
    module = pytest.importorskip("openai.lib._pydantic")

    for entry in render_openai_chat(sample_library(), strict=True).value:
        schema = entry["function"]["parameters"]
        assert is_strict_enough(schema)
        made = copy.deepcopy(schema)
        assert module._ensure_strict_json_schema(made, path=(), root=made) == schema


@SEVERAL
@given(data=st.data())
def test_any_strict_schema_is_one_of_the_sdks(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """OpenAI's own pass changes nothing, and Anthropic's tells nothing more in words."""
    openai = pytest.importorskip("openai.lib._pydantic")
    anthropic = pytest.importorskip("anthropic.lib._parse._transform")
    definition = data.draw(definitions)
    function = render_openai_chat([definition], strict=True).value[0]["function"]
    tool = render_anthropic([definition], strict=True).value[0]

    if function.get("strict"):
        made = copy.deepcopy(function["parameters"])
        assert openai._ensure_strict_json_schema(made, path=(), root=made) == function["parameters"]
    schema = tool["input_schema"]
    # The service takes lists of types, and formats beside values; its helper does not.
    is_plain = not any(
        isinstance(part.schema.get("type"), list) or "enum" in part.schema for part in parts(schema)
    )
    if tool.get("strict") and is_plain:
        assert said(anthropic.transform_schema(copy.deepcopy(schema))) == said(schema)


def is_strict_enough(schema: Any) -> bool:
    """Whether every object is closed, and needs all that it lists."""
    if isinstance(schema, list):
        return all(map(is_strict_enough, schema))
    if not isinstance(schema, dict):
        return True
    if "properties" in schema and isinstance(schema.get("required"), list):
        closed = schema["additionalProperties"] is False
        if not closed or list(schema["properties"]) != schema["required"]:
            return False
    return all(map(is_strict_enough, schema.values()))


@pytest.mark.parametrize("strict", [False, True])
def test_anthropic_takes_its_tools(strict: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """The types of the official SDK accept both forms of every sample tool."""
    types = pytest.importorskip("anthropic.types")
    from pydantic import TypeAdapter

    adapter = TypeAdapter(types.ToolParam)
    for entry in render_anthropic(sample_library(), strict=strict).value:
        adapter.validate_python(entry)
        assert entry.keys() <= types.ToolParam.__annotations__.keys()
        assert entry.get("strict", False) is strict


def test_strict_schemas_are_what_anthropic_makes_of_them() -> None:
    """The SDK's own pass over strict schemas moves nothing more into the words."""
    module = pytest.importorskip("anthropic.lib._parse._transform")

    for entry in render_anthropic(sample_library(), strict=True).value:
        made = module.transform_schema(copy.deepcopy(entry["input_schema"]))
        assert said(made) == said(entry["input_schema"])


def said(schema: Any) -> list[str]:
    """Every description in a schema."""
    if isinstance(schema, list):
        return [text for part in schema for text in said(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["description"]] if isinstance(schema.get("description"), str) else []
    return own + [text for part in schema.values() for text in said(part)]


def test_our_adapters_send_the_same() -> None:
    """What is exported is what an agent of ours would send: one encoder makes both."""
    tools = sample_library().definitions
    request = ModelRequest(messages=(UserMessage(text="hi"),), tools=tools)
    sent = AnthropicCodec(request).encode("model")["tools"]

    assert [{k: v for k, v in one.items() if k != "cache_control"} for one in sent] == (
        render_anthropic(tools).value
    )


def test_mcp_takes_its_listing() -> None:
    """The official types read the listing, and give it back unchanged."""
    types = pytest.importorskip("mcp.types")
    value = render_mcp(sample_library()).value
    listed = types.ListToolsResult.model_validate(value)

    dumped = listed.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert dumped["tools"] == value["tools"]


def test_mcp_comes_back_whole() -> None:
    """A listing that is read again has the contract, the result and the effects of the library."""
    for before in sample_library().definitions:
        text = json.dumps(render_mcp([before]).value)
        (after,) = definitions_from_json(text).definitions
        assert after.signature == before.signature
        assert after.description.parameters == before.description.parameters


@SEVERAL
@given(data=st.data())
def test_any_tool_comes_back_from_mcp(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """MCP keeps the signature of any definition, its effects included."""
    before = data.draw(definitions)
    batch = definitions_from_json(json.dumps(render_mcp([before]).value))

    assert batch.rejected == ()
    assert batch.definitions[0].signature == before.signature


@SEVERAL
@given(data=st.data(), name=st.sampled_from(["openai", "openai-responses", "anthropic", "gemini"]))
def test_signatures_come_back_but_for_what_is_reported(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject, name: str
) -> None:
    """Read back, a schema differs from the library's in no place that the report does not name."""
    before = data.draw(definitions)
    strict = FORMATS[name].has_strict and data.draw(st.booleans())
    rendering = render([before], name, strict=strict)
    value = {"functionDeclarations": rendering.value} if name == "gemini" else rendering.value
    batch = definitions_from_json(json.dumps(value))

    assert batch.rejected == ()
    (after,) = batch.definitions
    assert rendering.names[after.name] == before.name
    kept, wanted = after.parameters_schema, before.parameters_schema
    told = {re.sub(UNION, "", one.place).rstrip("/") for one in rendering.losses if one.place}
    untold = [
        place
        for place in changed_places(kept, wanted, "")
        if not any(place == one or (one and place.startswith(f"{one}/")) for one in told)
    ]
    assert untold == [], (kept, wanted, told)


UNION = r"/(?:anyOf|oneOf|allOf)(?:/\d+.*)?"  # what is below counts as a place of the whole


def changed_places(kept: Any, wanted: Any, place: str) -> Iterator[str]:
    """Pointers of the schemas that differ, but for objects that are said to be closed."""
    kept, wanted = plain(kept), plain(wanted)
    if not isinstance(kept, dict) or not isinstance(wanted, dict):
        if kept != wanted:
            yield place
        return
    for name in set(kept.get("required", ())) ^ set(wanted.get("required", ())):
        yield f"{place}/properties/{name}"
    below = kept.get("properties", {}), wanted.get("properties", {})
    for name in dict.fromkeys((*below[0], *below[1])):
        one, other = (side.get(name, ABSENT) for side in below)
        yield from changed_places(one, other, f"{place}/properties/{name}")
    one, other = (side.get("items", ABSENT) for side in (kept, wanted))
    yield from changed_places(one, other, f"{place}/items")
    for word in {*kept, *wanted} - {"required", "properties", "items"}:
        is_closing = word == "additionalProperties" and kept.get(word) is False
        if plain(kept.get(word, ABSENT)) != plain(wanted.get(word, ABSENT)) and not is_closing:
            yield place


def plain(schema: Any) -> Any:
    """A schema without what says nothing: unions of one branch, an empty list of properties."""
    if isinstance(schema, list):
        return [plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        word: plain(part) for word, part in schema.items() if (word, part) != ("properties", {})
    }
    branches = found.get("anyOf", ())
    rest = {word: part for word, part in found.items() if word != "anyOf"}
    if len(branches) == 1 and not rest.keys() & branches[0].keys():
        return rest | branches[0]
    return found


ABSENT = object()


@SEVERAL
@given(data=st.data())
def test_strict_openai_schemas_obey_the_rules(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """Whatever is sent as strict is closed, needs everything, and uses known keywords alone."""
    rendering = render_openai_chat([data.draw(definitions)], strict=True)
    function = rendering.value[0]["function"]
    if function.get("strict"):
        assert is_strict_enough(function["parameters"])
        assert keywords(function["parameters"]) <= STRICT_KEYWORDS
    else:
        assert "strict" in rendering.counts()


STRICT_KEYWORDS_TEXT = """
type enum const anyOf title description properties required additionalProperties items pattern
format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems
"""
STRICT_KEYWORDS = set(STRICT_KEYWORDS_TEXT.split())


def keywords(schema: Any) -> set[str]:
    """Every keyword of a schema; names of properties are none."""
    if isinstance(schema, list):
        return {key for part in schema for key in keywords(part)}
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for key, value in schema.items():
        if key == "properties":
            found |= {inner for part in value.values() for inner in keywords(part)}
        elif key in {"items", "anyOf"}:
            found |= keywords(value)
    return found


@SEVERAL
@given(data=st.data())
def test_gemini_gets_what_its_rules_allow(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """The doctor's rules for Gemini find nothing in what is rendered for it."""
    declaration = render_gemini([data.draw(definitions)]).value[0]
    parameters = lowered(declaration.get("parameters", {"type": "OBJECT", "properties": {}}))
    shown = ToolDefinition.from_schema(declaration["name"], "", parameters)
    rules = [rule for rule in PROVIDER_RULES if rule.provider == "gemini"]

    assert rules
    assert [text for rule in rules for text in rule.search(shown)] == []


def lowered(schema: Any) -> Any:
    """The schema with the type names of JSON Schema."""
    if isinstance(schema, list):
        return [lowered(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: lowered(value) for key, value in schema.items()}
    if isinstance(schema.get("type"), str):
        found["type"] = schema["type"].lower()
    return found


@pytest.mark.parametrize(
    ("schema", "expected", "keyword"),
    [
        (
            {"type": "string", "minLength": 3},
            {"type": "string", "description": "Must be at least 3 characters long."},
            "minLength",
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "oneOf",
        ),
        ({"allOf": [{"type": "string"}]}, {"type": "string"}, "allOf"),
        (
            {"type": "string", "default": "a", "description": "A word."},
            {"type": "string", "description": 'A word. Default: "a".'},
            "default",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {
                "type": "array",
                "items": {"type": "string"},
                "description": "No item may come twice.",
            },
            "uniqueItems",
        ),
        (
            {"type": "string", "format": "iban"},
            {"type": "string", "description": "Must be in the format iban."},
            "format",
        ),
    ],
)
def test_what_strict_mode_does_not_know_is_said(
    schema: dict[str, Any], expected: dict[str, Any], keyword: str
) -> None:
    """Unknown keywords go into the description, and the report names each."""
    rendering = render_openai_chat([with_property(schema)], strict=True)

    assert the_property(rendering) == expected
    assert [(loss.keyword, loss.place) for loss in rendering.losses] == [(keyword, "/properties/x")]


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array"},
        {"not": {"type": "string"}},
        {"enum": [{"a": 1}]},
        {"$ref": "#/$defs/missing"},
        {"type": "array", "items": {"$ref": "#"}},
        {"$ref": "https://example.org/schema"},
        {"allOf": [{"type": "string"}, {"minLength": 1}]},
    ],
)
def test_what_strict_mode_can_not_say_is_sent_without(schema: dict[str, Any]) -> None:
    """A tool that has no strict form keeps its schema, and the report says why."""
    tool = with_property(schema)
    for rendering in (
        render_openai_chat([tool], strict=True),
        render_anthropic([tool], strict=True),
    ):
        assert "strict" not in str(rendering.value)
        assert rendering.counts() == {"strict": 1}


def test_too_large_schemas_are_sent_without_strict() -> None:
    """The provider's bounds on depth, properties and values are kept."""
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        deep = {"type": "object", "properties": {"x": deep}, "required": ["x"]}
    many = {f"p{at}": {"type": "string"} for at in range(5_001)}
    values = {"type": "string", "enum": [str(at) for at in range(1_001)]}
    optional = {f"p{at}": {"type": "string"} for at in range(25)}

    for tool, words in (
        (with_property(deep), "levels"),
        (one({"type": "object", "properties": many}), "properties"),
        (with_property(values), "allowed values"),
    ):
        (loss,) = (one for one in render_openai_chat([tool], strict=True).losses)
        assert words in loss.detail
    (loss,) = render_anthropic(
        [one({"type": "object", "properties": optional})], strict=True
    ).losses
    assert "25 optional parameters in one request, where 24 are taken" in loss.detail


@pytest.mark.parametrize(
    ("parameters", "strict", "words"),
    [
        ({}, 20, "21 strict tools in one request, where 20 are taken"),
        ({"a": {"type": "string"}, "b": {"type": "string"}}, 12, "26 optional parameters"),
        ({"a": {"type": ["string", "null"]}}, 16, "17 parameters of several types"),
        ({"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, 16, "17 parameters of"),
    ],
)
def test_bounds_of_a_request_count_all_tools(
    parameters: dict[str, Any], strict: int, words: str
) -> None:
    """Anthropic's bounds are for all tools together: the first are strict, the others are told."""
    schema = {"type": "object", "properties": parameters}
    tools = [one(schema, name=f"f{at}") for at in range(21)]
    rendering = render_anthropic(tools, strict=True)

    assert ["strict" in tool for tool in rendering.value] == [at < strict for at in range(21)]
    losses = [loss for loss in rendering.losses if loss.keyword == "strict"]
    assert [loss.tool for loss in losses] == [f"f{at}" for at in range(strict, 21)]
    assert words in losses[0].detail


def test_references_are_replaced_and_bombs_are_stopped() -> None:
    """Shared definitions are written out; those that grow without bound end the attempt."""
    defs: dict[str, Any] = {"d0": {"type": "string"}}
    for at in range(1, 30):
        part = {"$ref": f"#/$defs/d{at - 1}"}
        defs[f"d{at}"] = {"type": "object", "properties": {"a": part, "b": part}}
    bomb = one({"type": "object", "properties": {"x": {"$ref": "#/$defs/d29"}}, "$defs": defs})
    plain = one({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})

    assert "strict" in render_openai_chat([bomb], strict=True).counts()
    assert render_gemini([bomb]).value
    assert the_property(render_openai_chat([plain], strict=True))["type"] == ["string", "null"]


def test_nulls_of_strict_calls_mean_left_out() -> None:
    """What a strict model had to fill in is taken out again, at any depth."""
    inner = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "null"}}}
    tool = one(
        {
            "type": "object",
            "properties": {
                "x": {"type": "string"},
                "y": {"type": ["string", "null"]},
                "z": {"type": "array", "items": inner},
            },
        },
        name="ns.tool",
    )
    rendering = render_openai_chat([tool], strict=True)
    name, arguments = rendering.call(
        "ns_tool", {"x": None, "y": None, "z": [{"a": None, "b": None}], "w": None}
    )

    assert name == "ns.tool"
    assert arguments == {"y": None, "z": [{"b": None}], "w": None}


def test_names_are_mapped_both_ways() -> None:
    """Names that a provider refuses get others, all different, with the way back."""
    library = Library(
        [one({"type": "object"}, name) for name in ("a.b", "a_b", "7up", "Überweisung")]
    )
    for name in ("openai", "anthropic", "gemini"):
        rendering = render(library, name)
        assert sorted(rendering.names.values()) == sorted(library.tools)
        assert [loss.tool for loss in rendering.losses if loss.keyword == "name"]
    assert set(gemini_names(["7up", "_7up", "__7up"]).values()) == {"7up", "_7up", "__7up"}


def test_only_formats_with_a_strict_mode_take_it() -> None:
    """Wrong names and modes are refused with those that there are."""
    with pytest.raises(UsageError, match="there is no format 'yaml'"):
        render(sample_library(), "yaml")
    with pytest.raises(UsageError, match="gemini has no strict mode"):
        render(sample_library(), "gemini", strict=True)


BROKEN = {"type": "object", "required": [{"a": 1}, 1], "properties": {"a": {"type": ["x", ["y"]]}}}


UNREADABLE = [("openai", True), ("gemini", False), ("python", False), ("markdown", False)]


@pytest.mark.parametrize(("format_name", "strict"), UNREADABLE)
def test_a_broken_schema_is_named_with_its_tool(format_name, strict):
    """A definition that a renderer can not read ends the export with an error that names it."""
    tools = [
        ToolDefinition.from_schema("calm", "Fine.", {}),
        ToolDefinition(name="odd", signature=Signature(parameters=BROKEN)),
    ]
    with pytest.raises(DefinitionError, match=r"rendered as .* signature\.parameters") as refused:
        render(tools, format_name, strict=strict)
    assert refused.value.tool_name == "odd"


def test_a_broken_schema_in_our_own_form_is_reported_on_import():
    """A file in agentkit's own form is checked as those of others are; the rest is imported."""
    good = ToolDefinition.from_schema("calm", "Fine.", {}).to_json()
    broken = {"name": "odd", "signature": {"parameters": BROKEN}}
    words = {"name": "loud", "signature": {}, "description": {"summary": 5}}
    batch = definitions_from_json([good, broken, words])
    assert [definition.name for definition in batch.definitions] == ["calm"]
    assert [entry.index for entry in batch.rejected] == [1, 2]
    assert "'odd' is not a tool definition: signature.parameters" in batch.rejected[0].reason
    assert "`description.summary` must be a string, got the number 5" in batch.rejected[1].reason


SEVERAL_text = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

HOSTILE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "class": {"type": "string", "description": 'Ends with """ and \\ and \x1b[31m.'},
        "a b": {
            "type": "array",
            "items": {"type": "object", "properties": {"n'": {"type": "null"}}},
        },
        "a_b": {"enum": ["x", None, 3, "quote'"]},
        "self": {"$ref": "#"},
        "price": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
        "rest": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["class"],
}
CALLS = """
from tools import bill_split, calendar_find_slot, weather_now

share: float = bill_split(amount=10.0, people=2)
slot: str | None = calendar_find_slot(day="2026-03-02", hours=1)
city = weather_now(city="Oslo", unit="celsius")
"""


def test_words_of_keywords_follow_those_of_the_tool() -> None:
    """A description without a full stop gets one, and examples are told as such."""
    city = {"type": "string", "description": "The city", "examples": ["Oslo"], "minLength": 2}
    tool = ToolDefinition.from_schema("f", "Do it.", {"properties": {"city": city}})
    words = 'The city. Must be at least 2 characters long. For example "Oslo".'

    assert words in render_python_stubs([tool]).value
    assert words in render_markdown([tool]).value


def test_stubs_check_calls_under_mypy(tmp_path: Path) -> None:
    """Right calls pass a strict type checker, and each wrong one is found."""
    (tmp_path / "tools.pyi").write_text(render_python_stubs(sample_library()).value)
    (tmp_path / "good.py").write_text(CALLS)
    (tmp_path / "bad.py").write_text(
        "from tools import bill_split, weather_now\n"
        "bill_split(amount='ten', people=2)\n"
        "bill_split(amount=10.0)\n"
        "weather_now(city='Oslo', unit='kelvin')\n"
        "weather_now('Oslo')\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir"]
    pytest.importorskip("mypy")

    done = subprocess.run(
        [*command, str(tmp_path / "cache"), "good.py", "bad.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found = {tuple(line.split(":")[:2]) for line in done.stdout.splitlines()}
    assert found == {("bad.py", line) for line in "2345"}


def test_hostile_words_stay_words_in_stubs() -> None:
    """Quotes, backslashes and control characters in texts do not end a docstring."""
    tool = ToolDefinition.from_schema('x"; import os', 'Say """\nand "', HOSTILE)
    rendering = render_python_stubs([tool, ToolDefinition(name="x___import_os")])
    tree = ast.parse(rendering.value)

    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions] == ["x___import_os_", "x___import_os"]
    assert [argument.arg for argument in functions[0].args.kwonlyargs] == [
        *("class_", "a_b_", "a_b", "self", "price", "rest")
    ]
    assert rendering.names["x___import_os_"] == 'x"; import os'
    assert "\x1b" not in rendering.value
    lost = {(loss.keyword, loss.went) for loss in rendering.losses}
    assert {("name", "changed"), ("$ref", "dropped"), ("minimum", "text")} <= lost


@SEVERAL_text
@given(data=st.data())
def test_any_library_makes_stubs_that_parse(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """Every stub file is Python: one function a tool, with one parameter a property."""
    library = Library(
        {one.name: one for one in data.draw(st.lists(definitions, max_size=3))}.values()
    )
    tree = ast.parse(render_python_stubs(library).value)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]

    assert [len(node.args.kwonlyargs) for node in functions] == [
        len(one.signature.properties) for one in library.definitions
    ]
    assert len({node.name for node in functions}) == len(library)


@SEVERAL_text
@given(data=st.data())
def test_any_library_makes_schemas_that_are_valid(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """Each schema is valid JSON Schema 2020-12, and holds what the tool's own does."""
    definition = data.draw(definitions)
    schema = render_json_schema([definition]).value[definition.name]

    jsonschema.Draft202012Validator.check_schema(schema)
    assert (
        schema.items()
        >= {
            key: value for key, value in definition.parameters_schema.items() if key != "title"
        }.items()
    )
    json.dumps(schema)


def test_pages_tell_every_level(store: Store) -> None:
    """A page has the words, the parameters, the program's tools, effects and examples."""
    page = render_markdown(store.load()).value

    assert page.splitlines()[0].endswith("tools of library version 4")
    for text in ("## order_total", "Made of: `add`, `mul`", "Effects: ", "A first number"):
        assert text in page
    assert '`{"price": 4, "count": 3, "fee": 2}` gives `14`' in page


def test_markup_in_words_is_no_markup() -> None:
    """Foreign words can neither open a heading nor a link, nor break a table."""
    parameters = {
        "type": "object",
        "properties": {"a|b": {"type": "string", "enum": ["`x`|", ""], "description": "# | <b>"}},
    }
    tool = ToolDefinition.from_schema(
        "n", "# Title\n\n[a](http://x) <script>", parameters, effects=Effects(destructive=True)
    )
    lines = render_markdown([tool]).value.splitlines()

    assert "\\# Title \\[a\\](http://x) \\<script\\>" in lines
    (row,) = (line for line in lines if line.startswith("| `a"))
    assert row.replace("\\|", "").count("|") == 5
    assert "- Effects: destructive" in lines
