"""Schemas of calls for constrained decoding, and worked examples where a model reads them."""

import asyncio
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import assume, given, settings, strategies as st
from support.model_server import ProviderServer

from agentkit import Agent, Library
from agentkit.agent import SelectionPolicy
from agentkit.errors import UsageError
from agentkit.messages import UserMessage
from agentkit.models import ModelRequest, OpenAICompatibleModel, resolve_model
from agentkit.models.grammar import answer_schema, call_schema, grammar_schema, plain_pattern
from agentkit.models.prompt_format import render_tools
from agentkit.testing import FunctionModel
from agentkit.tools import Example
from agentkit.tools.definition import ToolDefinition

KEYWORDS = {
    "additionalProperties", "anyOf", "const", "enum", "exclusiveMaximum", "exclusiveMinimum", "format",
    "items", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "multipleOf",
    "pattern", "prefixItems", "properties", "required", "type",
}  # fmt: skip


def tool(name, parameters):
    return ToolDefinition.from_schema(name, "", parameters)


def generated(draw, schema):
    """A value that an engine could write under a translated schema."""
    if "anyOf" in schema:
        return generated(draw, draw(st.sampled_from(schema["anyOf"])))
    if "const" in schema or "enum" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    if schema["type"] in NESTED:
        return NESTED[schema["type"]](draw, schema)
    return draw(SIMPLE[schema["type"]](schema))


def array(draw, schema):
    if "prefixItems" in schema:
        return [generated(draw, part) for part in schema["prefixItems"]]
    size = draw(st.integers(schema["minItems"], min(schema["maxItems"], schema["minItems"] + 3)))
    return [generated(draw, schema["items"]) for _ in range(size)]


def an_object(draw, schema):
    if "properties" not in schema:
        keys = draw(st.lists(st.text(max_size=3), max_size=3, unique=True))
        return {key: generated(draw, schema["additionalProperties"]) for key in keys}
    assert schema["additionalProperties"] is False
    chosen = [n for n in schema["properties"] if n in schema["required"] or draw(st.booleans())]
    return {name: generated(draw, schema["properties"][name]) for name in chosen}


NESTED = {"array": array, "object": an_object}


def strings(schema):
    least = schema.get("minLength", 0)
    if "pattern" in schema:
        texts = st.from_regex(schema["pattern"], fullmatch=True)
        return texts.filter(lambda text: least <= len(text) <= schema["maxLength"])
    return st.text(min_size=least, max_size=min(schema["maxLength"], least + 5))


def numbers(schema):
    lower = schema.get("minimum", schema.get("exclusiveMinimum"))
    upper = schema.get("maximum", schema.get("exclusiveMaximum"))
    return st.floats(
        lower,
        upper,
        allow_nan=False,
        allow_infinity=False,
        exclude_min="exclusiveMinimum" in schema,
        exclude_max="exclusiveMaximum" in schema,
    )


def integers(schema):
    return st.integers(schema["minimum"], schema["maximum"])


SIMPLE = {
    "string": strings,
    "integer": integers,
    "number": numbers,
    "boolean": lambda _: st.booleans(),
    "null": lambda _: st.none(),
}


def keywords(schema):
    """Every keyword in a translated schema."""
    yield from schema
    for part in [
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", ()),
        *schema.get("prefixItems", ()),
    ]:
        yield from keywords(part)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from keywords(schema[key])


SCALARS = st.sampled_from([None, True, False, 0, 1, 2, -3, 2.5, "a", "b", ""])
BOUND = st.integers(-5, 5)
SIZE = st.integers(0, 4)
PATTERNS = ["^[a-c]{1,3}$"]  # of two different patterns the first is kept, so there is one
STRINGS = st.fixed_dictionaries(
    {"type": st.just("string")}, optional={"minLength": SIZE, "maxLength": SIZE}
) | st.fixed_dictionaries({"type": st.just("string"), "pattern": st.sampled_from(PATTERNS)})
NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={
        "minimum": BOUND,
        "maximum": BOUND,
        "exclusiveMinimum": BOUND,
        "exclusiveMaximum": BOUND,
    },
)
CHOICES = st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=4)})
CONSTANTS = st.fixed_dictionaries({"const": SCALARS})
TYPES = st.lists(
    st.sampled_from(["string", "integer", "number", "boolean", "null"]), min_size=1, unique=True
)
NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = (
    STRINGS | NUMBERS | CHOICES | CONSTANTS | st.just({}) | st.just({"$ref": "#/$defs/shared"})
    | st.fixed_dictionaries({"type": TYPES}) | st.fixed_dictionaries({"type": TYPES, "enum": st.lists(SCALARS, min_size=1)})
)  # fmt: skip


def nested(inner):
    properties = st.dictionaries(NAMES, inner, max_size=3)
    return (
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": properties},
            optional={
                "required": st.lists(NAMES, unique=True),
                "additionalProperties": st.booleans() | inner,
            },
        )
        | st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"minItems": SIZE, "maxItems": SIZE},
        )
        | st.fixed_dictionaries(
            {"type": st.just("array"), "prefixItems": st.lists(inner, min_size=1, max_size=3)}
        )
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
    )


SCHEMAS = st.builds(
    lambda schema, shared: {**schema, "$defs": {"shared": shared}},
    st.recursive(LEAVES, nested, max_leaves=6),
    STRINGS | NUMBERS | CHOICES,
)


@settings(max_examples=150, deadline=None)
@given(schema=SCHEMAS, data=st.data())
def test_what_is_generated_satisfies_the_schema(schema, data):
    """Whatever keywords a schema uses, its translation is not wider."""
    translated = grammar_schema(schema)
    assume(translated is not None)
    assert set(keywords(translated)) <= KEYWORDS
    value = generated(data.draw, translated)
    jsonschema.Draft202012Validator(schema).validate(value)


def test_one_answer_names_a_tool_before_its_arguments():
    """The name is a constant, comes first, and goes with that tool's parameters alone."""
    one = tool(
        "one", {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    )
    two = tool("two", {"type": "object", "properties": {"y": {"type": "string"}}})
    schema = call_schema([one, two], max_calls=3)
    calls = schema["properties"]["calls"]
    assert (calls["minItems"], calls["maxItems"]) == (1, 3)
    first, second = calls["items"]["anyOf"]
    assert list(first["properties"]) == ["name", "arguments"]
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"calls": [{"name": "one", "arguments": {"x": 1}}]})
    assert not validator.is_valid({"calls": [{"name": "two", "arguments": {"x": 1}}]})
    assert not validator.is_valid({"calls": [{"name": "one", "arguments": {}}]})
    assert not validator.is_valid({"calls": []})
    assert second["properties"]["name"] == {"const": "two"}


def test_text_is_allowed_when_calls_are_not_required():
    """Beside calls there is an answer, as text or in the shape that was asked for."""
    wait = tool("wait", {"type": "object", "properties": {}})
    free = jsonschema.Draft202012Validator(call_schema([wait], allow_text=True))
    assert free.is_valid({"answer": "Hello."})
    assert free.is_valid({"calls": [{"name": "wait", "arguments": {}}]})
    shape = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    shaped = jsonschema.Draft202012Validator(call_schema([wait], allow_text=True, answer=shape))
    assert shaped.is_valid({"answer": {"total": 3}})
    assert not shaped.is_valid({"answer": "Hello."})


def test_everything_has_an_end():
    """Strings, arrays and integers get bounds; a minimum of the schema's own wins."""
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "long": {"type": "string", "minLength": 500},
            "list": {"type": "array", "items": {"type": "integer"}},
            "many": {"type": "array", "minItems": 50},
        },
    }
    parts = grammar_schema(schema, max_characters=40)["properties"]
    assert parts["text"]["maxLength"] == 40
    assert parts["long"]["maxLength"] == 500
    assert parts["list"]["maxItems"] == 20
    assert parts["list"]["items"]["maximum"] == 2**53 - 1
    assert parts["many"]["maxItems"] == 50
    assert answer_schema({"type": "string"})["maxLength"] == 2000


def test_references_are_inlined_and_recursion_ends():
    """A recursive type is unrolled once; deeper levels are left out where the schema allows it."""
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                },
                "required": ["value"],
            }
        },
    }
    translated = grammar_schema(tree)
    child = translated["properties"]["children"]["items"]
    assert child["properties"]["children"] == {"const": []}
    assert child["properties"]["next"] == {"type": "null"}
    assert "$ref" not in set(keywords(translated))


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 5, "maximum": 3},
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
        {"type": "number", "minimum": 1, "exclusiveMaximum": 1},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "array", "minItems": 2, "maxItems": 1},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "integer", "enum": ["1", "2"]},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"allOf": [{"enum": [1, 2]}, {"enum": [3]}]},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"$ref": "#"},
    ],
)
def test_a_schema_that_nothing_satisfies_is_recognised(schema):
    """Contradictions are found instead of being turned into a grammar of something else."""
    assert grammar_schema(schema) is None


def test_a_tool_with_a_contradiction_can_still_be_called():
    """The call is refused later, by name of the broken rule, which is how the mistake gets seen."""
    broken = {"type": "integer", "enum": ["1", "2"]}
    schema = {
        "type": "object",
        "properties": {"n": broken, "s": {"type": "string"}},
        "required": ["n"],
    }
    arguments = call_schema([tool("f", schema)])["properties"]["calls"]["items"]["properties"][
        "arguments"
    ]
    assert list(arguments["properties"]) == ["n", "s"]
    assert arguments["required"] == ["n"]


def test_nothing_on_offer_is_a_mistake():
    """Without tools there is no call to describe, and an impossible answer has no schema."""
    with pytest.raises(UsageError, match="no tool is offered"):
        call_schema([])
    with pytest.raises(UsageError, match="nothing satisfies"):
        answer_schema({"enum": []})


def test_a_tool_without_parameters_takes_none():
    """An empty object schema does not invite made-up arguments; an open one does."""
    for parameters in ({"type": "object"}, {"type": "object", "properties": {}}, {}):
        items = call_schema([tool("f", parameters)])["properties"]["calls"]["items"]
        assert items["properties"]["arguments"] == {"const": {}}
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    items = call_schema([tool("f", free)])["properties"]["calls"]["items"]
    assert items["properties"]["arguments"]["additionalProperties"]["type"] == "integer"


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        (r"^\d{3}-\w+$", "^[0-9]{3}-[A-Za-z0-9_]+$"),
        (r"^(?:a|b)[\d.]*$", "^(a|b)[0-9.]*$"),
        (r"^\$\d+\.\d{2}$", r"^\$[0-9]+\.[0-9]{2}$"),
        (r"^\\d$", None),
        ("^a.c$", None),
        ("^[^a]$", None),
        ("abc", None),
        ("^(?=a)b$", None),
        (r"^\bword$", None),
        (r"^\S+$", None),
        ('^"$', None),
        ("^a++$", None),
        ("^(a$", None),
        (r"^[\]]$", None),
        (7, None),
    ],
)
def test_patterns_keep_to_what_every_engine_reads(pattern, plain):
    """Plain patterns are translated; the others are dropped rather than misread."""
    assert plain_pattern(pattern) == plain


FORECAST = replace(
    ToolDefinition.from_schema(
        "forecast",
        "The weather.",
        {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    ),
    examples=(
        Example(arguments={"city": "x" * 300}),
        Example(arguments={"city": "Oslo", "days": 3}),
        Example(arguments={"city": "Århus", "days": 1}),
        Example(arguments={"city": "Rome", "days": 2}),
    ),
)
ASKED = ModelRequest(messages=(UserMessage(text="Rain?"),), tools=(FORECAST,))
LINES = 'The weather.\nExample: {"city": "Oslo", "days": 3}\nExample: {"city": "Århus", "days": 1}'


@pytest.fixture
def sent(monkeypatch):
    """The bodies and headers that a model sends for some requests."""

    def send(scheme, *requests):
        with ProviderServer(["Yes."] * len(requests)) as server:
            monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
            model = (
                resolve_model("anthropic:claude")
                if scheme == "anthropic"
                else OpenAICompatibleModel("m", base_url=server.base_url)
            )

            async def ask():
                async with model:
                    for request in requests:
                        await model.complete(request)

            asyncio.run(ask())
            return [(one.body, one.headers) for one in server.requests]

    return send


def test_a_server_of_chat_completions_reads_them_in_the_description(sent):
    """As many as are asked for, the short ones in order; another number is serialised anew."""
    bodies = sent("chat", replace(ASKED, examples=2), ASKED, replace(ASKED, examples=2))
    texts = [body["tools"][0]["function"]["description"] for body, _ in bodies]
    assert texts == [LINES, "The weather.", LINES]


def test_anthropic_reads_them_as_input_examples(sent):
    """In a field of their own, which needs a header; requests without them have neither."""
    (body, headers), (plain, bare) = sent("anthropic", replace(ASKED, examples=1), ASKED)
    assert body["tools"][0]["input_examples"] == [{"city": "Oslo", "days": 3}]
    assert body["tools"][0]["description"] == "The weather."
    assert headers["anthropic-beta"] == "advanced-tool-use-2025-11-20"
    assert "input_examples" not in plain["tools"][0]
    assert "anthropic-beta" not in bare


@pytest.mark.parametrize("format", ["json", "python"])
def test_prompts_hold_them(format):  # noqa: A002 - the word of the field
    """Models that know no tools read them in the system prompt."""
    assert "Oslo" in render_tools([FORECAST], format, examples=1)
    assert "Århus" not in render_tools([FORECAST], format, examples=1)
    assert "Oslo" not in render_tools([FORECAST], format)


def test_an_agent_asks_for_as_many_as_its_policy_says():
    """By default none are shown."""
    seen = []
    model = FunctionModel(lambda request: seen.append(request.examples) or "Done.")
    for selection in (SelectionPolicy(examples=3), SelectionPolicy()):
        Agent(model, library=Library([FORECAST]), selection=selection).run_sync("Rain?")
    assert seen == [3, 0]
