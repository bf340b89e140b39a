"""Learned rules: what they say, refuse and narrow, and what is held to them."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from agentkit import Agent, Library, composite, tool
from agentkit.composites import RuleChecker, rule_problems
from agentkit.errors import DefinitionError, ToolFailed
from agentkit.evolution.proposers.constraints import stated_ranges
from agentkit.evolution.proposers.observed import rule_of
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models.chat_completions import encode_tool
from agentkit.models.grammar import call_schema, grammar_schema
from agentkit.models.prompt_format import render_tools
from agentkit.testing import ScriptedModel, sample_library
from agentkit.tools import (
    Between,
    CallBefore,
    Condition,
    Effects,
    Example,
    Form,
    OneOf,
    Requires,
    Signature,
    Specification,
    Takes,
    Tool,
    ToolDefinition,
    narrowed_schema,
    rule_from_json,
    rule_sentence,
    rule_to_json,
)
from agentkit.tools.patterns import FORMATS

# --- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (OneOf(parameter="periods", values=(36, 48, 60)), "periods must be one of 36, 48, 60."),
        (
            OneOf(parameter="x", values=("a", 1.5, True, None)),
            'x must be one of "a", 1.5, true, null.',
        ),
        (Between(parameter="n", maximum=9, unit="days"), "n must be at most 9, in days."),
        (
            Between(parameter="n", minimum=12, maximum=60, multiple_of=12, unit="months"),
            "n must be from 12 to 60 and a multiple of 12, in months.",
        ),
        (Between(parameter="n", unit="months"), "n is in months."),
        (
            Form(parameter="start", format="date"),
            "start must be a date (YYYY-MM-DD), such as 2026-05-31.",
        ),
        (
            Form(
                parameter="address.country",
                pattern="[A-Z]{2}",
                words="two capital letters",
                example="DE",
            ),
            "address.country must be two capital letters, such as DE.",
        ),
        (
            Requires(parameter="start", others=("end", "currency", "amount")),
            "When start is given, end, currency and amount must be given too.",
        ),
        (
            Condition(expression="start <= end", words="start must not be\n after end"),
            "start must not be after end.",
        ),
        (
            CallBefore(tool="find_customer", parameter="customer_id"),
            "Call find_customer first; customer_id comes from its result.",
        ),
    ],
)
def test_a_rule_in_words(rule, sentence) -> None:
    """Values are written as a call would write them, and words end as a sentence does."""
    assert rule_sentence(rule) == sentence


# --- refusals -------------------------------------------------------------------------------------

PERIODS = OneOf(parameter="periods", values=(36, 48, 60))


@pytest.mark.parametrize(
    ("rule", "arguments", "sentence", "nearest"),
    [
        (
            Between(parameter="periods", minimum=12, maximum=60, multiple_of=12),
            {"periods": 40},
            "`periods` must be from 12 to 60 and a multiple of 12, got the number 40",
            (),
        ),
        (
            Form(parameter="start", format="date"),
            {"start": "2024-02-30"},
            (
                "`start` must be a date (YYYY-MM-DD), such as 2026-05-31, "
                "got the string '2024-02-30'"
            ),
            ("2026-05-31",),
        ),
        (
            Form(parameter="address.country", pattern="[A-Z]{2}", words="two capitals", example="DE"),
            {"address": {"country": "DEU"}},
            "`address.country` must be two capitals, such as DE, got the string 'DEU'",
            ("DE",),
        ),
        (
            OneOf(parameter="items[].sku", values=("A1", "B2")),
            {"items": [{"sku": "A1"}, {}, {"sku": "a"}]},
            "`items[2].sku` must be one of \"A1\", \"B2\", got the string 'a'",
            ("A1",),
        ),
        (
            Requires(parameter="start", others=("end",)),
            {"start": "2024-01-01"},
            "`end` must be given too when `start` is given",
            (),
        ),
        (
            Condition(expression="start <= end", words="start must not be after end."),
            {"start": "b", "end": "a"},
            "start must not be after end, got start = 'b' and end = 'a'",
            (),
        ),
    ],
)  # fmt: skip
def test_each_kind_of_rule(loan_with, rule, arguments, sentence, nearest) -> None:
    """The sentence names the place, the demand and the value; allowed values come best first."""
    failure = RuleChecker(loan_with(rule)).refusal(arguments)
    assert failure is not None
    assert (failure.rule, failure.nearest, failure.cause) == (sentence, nearest, rule.kind)


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        (PERIODS, {"periods": 36.0}),
        (Between(parameter="amount", multiple_of=0.01), {"amount": 19.99}),
        (Between(parameter="amount", multiple_of=math.nan), {"amount": 3}),
        (Form(parameter="start", pattern="(?=a)b", words="w"), {"start": "a" * 5_000}),
        (Form(parameter="start", pattern="(?i)b", words="w"), {"start": "a"}),
        (Requires(parameter="start", others=("end",)), {"end": "x"}),
        (Condition(expression="start <= end", words="w"), {"start": "b"}),
        (Condition(expression="import os", words="w"), {"amount": 1}),
        (OneOf(parameter="unheard_of", values=(1,)), {"unheard_of": 2}),
        (CallBefore(tool="log_in"), {}),
    ],
)  # fmt: skip
def test_what_a_rule_can_not_judge_it_does_not_refuse(loan_with, rule, arguments) -> None:
    """Values of other types, rules that make no sense and things that are not known pass."""
    assert RuleChecker(loan_with(rule)).refusal(arguments) is None


# --- bounds that are themselves not allowed -------------------------------------------------------

BOUNDS = st.none() | st.sampled_from([-5, -1, -0.5, 0, 0.1, 1, 2, 2.5, 7])
RANGES = st.builds(
    Between,
    parameter=st.just("n"),
    minimum=BOUNDS,
    maximum=BOUNDS,
    exclusive_minimum=BOUNDS,
    exclusive_maximum=BOUNDS,
)
EDGES = (-5, -1, -0.5, 0, 0.1, 1, 2, 2.5, 7)
VALUES = (*EDGES, *(edge + step for edge in EDGES for step in (-0.01, 0.01)), -99, 99, 3, 4)


def measured(kind, **more):
    """A tool with one number."""
    schema = {"type": "object", "properties": {"n": {"type": kind, **more}}, "required": ["n"]}
    return ToolDefinition.from_schema("f", "", schema)


def ruled(rule, kind="number", **more):
    """The tool with a rule."""
    return replace(measured(kind, **more), specification=Specification(rules=(rule,)))


def refuses(rule, value):
    """Whether the executor refuses a value."""
    return RuleChecker(ruled(rule)).refusal({"n": value}) is not None


def accepts(schema, value):
    """What the reference implementation of JSON Schema says."""
    return Draft202012Validator(schema).is_valid({"n": value})


def read_back(rule, definition):
    """The parts of a rule as its own sentence states them."""
    sentence = rule_sentence(rule)
    return [rule_of(stated, "n", definition) for stated in stated_ranges(sentence)]


@given(RANGES, st.sampled_from(["number", "integer"]))
def test_all_that_is_derived_of_a_range_agrees_on_every_value(rule, kind):
    """Schema, refusal and the sentence read back accept the same numbers; the grammar no others."""
    definition = ruled(rule, kind)
    narrowed = definition.parameters_schema
    grammar = grammar_schema(narrowed)
    is_sound = not rule_problems(rule, measured(kind))
    told = read_back(rule, measured(kind)) if is_sound else []
    for value in VALUES:
        if kind == "integer" and value % 1:
            continue
        allowed = not refuses(rule, value)
        assert accepts(narrowed, value) == allowed
        assert not is_sound or all(not refuses(one, value) for one in told) == allowed
        assert (grammar is not None and accepts(grammar, value)) == allowed


# --- the narrowed schema --------------------------------------------------------------------------


def narrowed(part, *rules):
    """The schema of the parameter ``x`` after narrowing."""
    return narrowed_schema({"type": "object", "properties": {"x": part}}, rules)["properties"]["x"]


@pytest.mark.parametrize(
    ("part", "rule", "expected"),
    [
        (True, OneOf(parameter="x", values=(1, 2)), {"enum": [1, 2]}),
        ({"enum": [3, 2, 1]}, OneOf(parameter="x", values=(1, 2, 9)), {"enum": [1, 2]}),
        ({"minimum": 2}, OneOf(parameter="x", values=(1, 2)), {"minimum": 2, "enum": [2]}),
        ({"type": "integer"}, OneOf(parameter="x", values=("a",)), {"type": "integer"}),
        (
            {"minimum": 5, "maximum": 9},
            Between(parameter="x", minimum=3, maximum=7),
            {"minimum": 5, "maximum": 7},
        ),
        ({"multipleOf": 2}, Between(parameter="x", multiple_of=2), {"multipleOf": 2}),
        (
            {"multipleOf": 2},
            Between(parameter="x", multiple_of=3),
            {"multipleOf": 2, "allOf": [{"multipleOf": 3}]},
        ),
        ({}, Form(parameter="x", pattern="[A-Z]{2}", words="w"), {"pattern": "^[A-Z]{2}$"}),
        (
            {"pattern": "^D"},
            Form(parameter="x", pattern="DE|AT", words="w"),
            {"pattern": "^D", "allOf": [{"pattern": "^(?:DE|AT)$"}]},
        ),
        ({}, Form(parameter="x", format="date"), {"format": "date"}),
        ({}, Between(parameter="x", minimum=float("nan"), multiple_of=0), {}),
    ],
)
def test_keywords_of_a_parameter(part, rule, expected) -> None:
    """The tighter keyword stays; what cannot be merged holds as well, under ``allOf``."""
    assert narrowed(part, rule) == expected


@pytest.mark.parametrize(
    ("contract", "rule"),
    [
        ({}, CallBefore(tool="log_in")),
        ({}, Condition(expression="a < b", words="w")),
        ({"properties": {}}, PERIODS),
        ({"properties": {"n": {}}}, Form(parameter="n", pattern="(?=a)a")),
        ({"properties": {"periods": {}, "m": {"$ref": "#/properties/periods"}}}, PERIODS),
        ({"properties": {"periods": {"$dynamicRef": "#/$defs/x"}}}, PERIODS),
        ({"allOf": [{"properties": {"periods": {}}}], "unevaluatedProperties": False}, PERIODS),
        ({"properties": {"periods": False}}, PERIODS),
        ({"properties": {"periods": {"type": "string"}}}, PERIODS),
        ({"properties": {"a": {}}, "dependentRequired": 3}, Requires(parameter="a", others=("b",))),
    ],
)
def test_what_a_schema_can_not_state(contract, rule) -> None:
    """A rule that would touch more than its parameter stays out of the schema."""
    assert narrowed_schema(contract, [rule]) is contract


# --- never wider than the contract ----------------------------------------------------------------


GIVEN = [-1, 0, 1, 2, 3, 6, 7, 2.5, "", "A", "AB", "ab", "ABC", "2024-02-30", None, True, False]
NUMBERS = st.sampled_from([-1, 0, 1, 2, 3, 6, 7, 2.5])
SCALARS = st.sampled_from(GIVEN)
PATTERNS = st.sampled_from(["[A-Z]{2}", "[A-Z]+", "^A.*$", "A|ab", "", "\\d{4}-\\d\\d-\\d\\d"])

LEAF = {"type": ["integer", "string"], "minimum": 2, "pattern": "^[A-Z]"}
LEAVES = st.sampled_from(
    [
        True,
        LEAF,
        {"enum": [1, 2, "AB"], "not": {"const": 2}},
        {"$ref": "#/$defs/Leaf"},
        {"$ref": "#/$defs/Leaf", "description": "A leaf.", "maximum": 6},
        {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]},
        {"oneOf": [LEAF, {"enum": [1, "A"]}]},
        {"allOf": [LEAF, {"$ref": "#/$defs/Leaf"}]},
    ]
)


def box(form, leaf, *, closed):
    """A schema of an object with a property ``x``, stated here or elsewhere."""
    inside = {"type": "object", "properties": {"x": leaf}}
    shut = {"additionalProperties": False} if closed else {}
    return [
        {**inside, **shut},
        {"$ref": "#/$defs/Object"},
        {"anyOf": [{**inside, **shut}, {"type": "null"}]},
        {"oneOf": [{**inside, **shut}, {"properties": {"x": LEAF, "y": {}}}]},
        {"allOf": [inside], "properties": {"y": {}}, **shut},
        {"allOf": [inside], "unevaluatedProperties": False},
        {"$ref": "#/$defs/Object", "additionalProperties": {"type": "integer"}},
        {"patternProperties": {"^x$": {"type": "integer"}}, "allOf": [inside]},
    ][form]


BOXES = st.builds(box, st.integers(0, 7), LEAVES, closed=st.booleans())


@st.composite
def contracts(draw):
    """A parameters schema with values, objects and lists of both."""
    boxes = {"type": "array", "items": draw(BOXES)}
    several = [boxes, {"anyOf": [boxes, {"type": "null"}]}, {**boxes, "prefixItems": [True]}]
    root = {
        "type": "object",
        "properties": {
            "n": draw(LEAVES),
            "o": draw(BOXES),
            "l": {"type": "array", "items": draw(LEAVES)},
            "p": draw(st.sampled_from(several)),
            "again": draw(st.sampled_from([{}, {}, {}, {"$ref": "#/properties/n"}, {"$ref": "#"}])),
        },
        "$defs": {"Leaf": LEAF, "Object": {"type": "object", "properties": {"x": LEAF, "z": {}}}},
    }
    more = [{}, {"additionalProperties": False}, {"dependentRequired": {"n": ["l"]}}]
    return {**root, **draw(st.sampled_from(more))}


PARAMETERS = st.sampled_from(["n", "o", "o.x", "l[]", "l", "p[].x", "again", "gone"])
RULES = st.one_of(
    st.builds(
        OneOf, parameter=PARAMETERS, values=st.lists(SCALARS, min_size=1, max_size=4).map(tuple)
    ),
    st.builds(
        Between,
        parameter=PARAMETERS,
        minimum=st.none() | NUMBERS,
        maximum=st.none() | NUMBERS,
        exclusive_minimum=st.none() | NUMBERS,
        exclusive_maximum=st.none() | NUMBERS,
        multiple_of=st.sampled_from([None, 2, 3, -1, 0]),
    ),
    st.builds(
        Form,
        parameter=PARAMETERS,
        pattern=PATTERNS,
        format=st.sampled_from(["", "date", "email"]),
        words=st.just("so"),
    ),
    st.builds(
        Requires,
        parameter=st.sampled_from(["n", "o", "gone"]),
        others=st.lists(st.sampled_from(["l", "p", "gone"]), max_size=2).map(tuple),
    ),
)
PLACES = {
    "n": [lambda value: {"n": value}, lambda value: {"n": value, "l": []}],
    "o": [lambda value: {"o": value}, lambda value: {"o": value, "p": None, "l": []}],
    "o.x": [lambda value: {"o": {"x": value}}, lambda value: {"o": {"x": value, "y": 1}}],
    "l": [lambda value: {"l": value}],
    "l[]": [lambda value: {"l": [value]}, lambda value: {"l": [1, value]}],
    "p[].x": [lambda value: {"p": [{"x": value}]}, lambda value: {"p": [1, {"x": value}]}],
    "again": [lambda value: {"again": value}, lambda value: {"again": {"n": value}}],
    "gone": [lambda value: {"gone": value}],
}


def calls_about(rules):
    """Arguments that give every value wherever a rule speaks of one, and none at all."""
    makers = [make for rule in rules for make in PLACES[rule.parameter]]
    return [{}, {"extra": 1}, *(make(value) for make in makers for value in GIVEN)]


CHECKER = FormatChecker(formats=())
for name, has_form in FORMATS.items():
    CHECKER.checks(name)(
        lambda value, has_form=has_form: not isinstance(value, str) or has_form(value)
    )


def reader_of(schema):
    """What the reference implementation says of arguments."""
    return Draft202012Validator(schema, format_checker=CHECKER).is_valid


LISTS = st.builds(
    OneOf,
    parameter=st.sampled_from(["n", "o.x", "l[]"]),
    values=st.lists(SCALARS, min_size=1, max_size=2).map(tuple),
)


DISCOVERED = st.builds(
    Takes,
    parameter=st.sampled_from(["n", "o", "l", "again", "gone"]),
    types=st.sampled_from([(), ("number",), ("integer", "string"), ("number[][]",), ("object",)]),
    required=st.booleans(),
)


@given(contracts(), st.lists(RULES | LISTS, max_size=5), st.lists(DISCOVERED, max_size=3))
def test_rules_never_widen_the_contract(contract, rules, discovered) -> None:
    """What calls showed adds to no contract, nor do lists without a common value."""
    narrowed = narrowed_schema(contract, [*rules, *discovered])
    Draft202012Validator.check_schema(narrowed)
    accepts, accepts_narrowed = reader_of(contract), reader_of(narrowed)
    for arguments in calls_about([*rules, *discovered]):
        assert accepts(arguments) or not accepts_narrowed(arguments)
    assert narrowed_schema(narrowed, discovered) == narrowed


@given(contracts(), st.lists(RULES, min_size=1, max_size=3))
def test_narrowed_schema_and_refusal_agree(contract, rules) -> None:
    """A schema accepts exactly what contract and those rules let pass that it can state.

    So rules take values away, and never add one. The contract stays as it is.
    """
    whole = copy.deepcopy(contract)
    stated = ()
    for rule in rules:  # two lists without a common value: the second cannot be stated any more
        before = narrowed_schema(contract, stated)
        if narrowed_schema(before, [rule]) is not before or rule in stated:
            stated = (*stated, rule)
    definition = ToolDefinition(
        name="f",
        signature=Signature(parameters=contract),
        specification=Specification(rules=stated),
    )
    assert contract == whole
    Draft202012Validator.check_schema(definition.parameters_schema)
    checker = RuleChecker(definition)
    accepts, accepts_narrowed = reader_of(contract), reader_of(definition.parameters_schema)
    for arguments in calls_about(rules):
        passes = accepts(arguments) and checker.refusal(arguments) is None
        assert accepts_narrowed(arguments) == passes


# --- refused, explained, corrected ----------------------------------------------------------------


@pytest.fixture
def call() -> Callable[..., ToolCall]:
    """``call("f", x=1)`` makes a call whose id is its name."""

    def make(called: str, /, **arguments: object) -> ToolCall:
        return ToolCall(call_id=called, name=called, arguments=arguments)

    return make


def learned(base: Tool, *rules) -> Tool:
    """The same tool with rules."""
    specification = replace(base.definition.specification, rules=rules)
    return base.with_definition(replace(base.definition, specification=specification))


@tool(effects=Effects.pure())
def quote(amount: float, periods: int, currency: str = "EUR") -> float:
    """Quote a loan.

    Args:
        amount: How much.
        periods: How long.
        currency: In what.
    """
    return round(amount / periods, 2)


def results(tools, *turns, **options):
    """The results of all calls of a run, in order."""
    model = ScriptedModel([*turns, "done"])
    run = Agent(model, tools=tools, **options).run_sync("go")
    return [result for turn in run.episode.turns for result in turn.results]


def test_all_four_views_come_and_go_with_the_rule(call) -> None:
    """Sentence, schema, grammar and refusal are derived; without the rule none of them is left."""

    def views(definition):
        wire = encode_tool(definition, definition.name)["function"]
        return {
            "sentence": "must be one of 36" in wire["description"],
            "schema": "enum" in wire["parameters"]["properties"]["periods"],
            "grammar": "36" in str(call_schema([definition])),
            "card": "periods: 36|48|60" in render_tools([definition], "json"),
            "refusal": results(
                [quote.with_definition(definition)], [call("quote", amount=1, periods=7)]
            )[0].status
            == "failed",
        }

    ruled = learned(quote, PERIODS)
    assert all(views(ruled.definition).values())
    assert not any(views(learned(ruled).definition).values())
    assert learned(ruled).definition.digest == quote.definition.digest


# --- another call first ---------------------------------------------------------------------------


@tool(effects=Effects.of(["reads"]))
def find_customer(name: str) -> dict[str, str]:
    """Find a customer."""
    if name == "nobody":
        raise ToolFailed("there is nobody of that name")
    return {"id": f"C-{name}"}


@tool
def order(customer: str) -> str:
    """Order for a customer."""
    return f"ordered for {customer}"


FIRST = CallBefore(tool="find_customer", parameter="customer")
SHOP = [find_customer, learned(order, FIRST)]


def test_a_call_before_in_the_same_turn(call) -> None:
    """A call waits for the one before it in the turn that its rule wants; not for one behind it."""
    ahead = results(SHOP, [call("find_customer", name="Ada"), call("order", customer="C-Ada")])
    behind = results(SHOP, [call("order", customer="C-Ada"), call("find_customer", name="Ada")])
    assert [one.status for one in ahead] == ["ok", "ok"]
    assert [one.status for one in behind] == ["failed", "ok"]


@pytest.mark.parametrize(
    ("customer", "status"), [("C-17", "ok"), ("C-1", "failed"), ("", "failed"), ("大阪", "ok")]
)
def test_a_value_comes_from_a_result_as_a_whole(call, customer, status) -> None:
    """A part of a longer word is another value; scripts without spaces have no words to break."""

    @tool(effects=Effects.of(["reads"]))
    def find_customer(name: str) -> str:
        """Find a customer."""
        return '{"id":"C-17", "place":"大阪市", "last":"order 5, paid"}'

    tools = [find_customer, learned(order, FIRST)]
    made = results(tools, [call("find_customer", name="Ada"), call("order", customer=customer)])
    assert made[-1].status == status


@pytest.mark.parametrize(
    ("text", "status"),
    [('{"id":"C-Ada"}', "ok"), ("find_customer failed. There is nobody: C-Ada.", "failed")],
)
def test_a_call_before_in_the_conversation(call, text, status) -> None:
    """Successful calls of earlier runs count; what reads like one of our refusals does not."""
    history = [
        UserMessage(text="Who is Ada?"),
        AssistantMessage(tool_calls=(call("find_customer", name="Ada"),)),
        ToolMessage(call_id="find_customer", name="find_customer", text=text),
        AssistantMessage(text="There."),
    ]
    model = ScriptedModel([[call("order", customer="C-Ada")], "done"])
    run = Agent(model, tools=SHOP).run_sync("Order", history=history)
    assert run.episode.turns[0].results[0].status == status


# --- composites -----------------------------------------------------------------------------------

RULED = learned(quote, PERIODS)
ORDER = learned(order, FIRST)


@composite(tools=[RULED])
def quote_twice(amount: float, periods: int) -> float:
    """Two loans at once."""
    return quote(amount, periods, "EUR") + quote(amount, periods, "EUR")


@composite(tools=[ORDER])
def order_twice(customer: str) -> list[str]:
    """Order twice for a customer."""
    return [order(customer), order(customer)]


@composite(tools=[ORDER, find_customer])
def order_for(name: str) -> str:
    """Order for a customer of that name."""
    found = find_customer(name)
    return order(found["id"])


def test_a_rule_of_a_child_holds_inside_a_composite(call) -> None:
    """The child's call is refused in the same words, with the path of calls before them."""
    refused, done = results(
        [RULED, quote_twice],
        [call("quote_twice", amount=360, periods=40)],
        [call("quote_twice", amount=360, periods=36)],
    )
    assert refused.failure.kind == "contract_violated"
    assert refused.failure.rule == (
        "quote_twice → quote: `periods` must be one of 36, 48, 60, got the number 40"
    )
    assert done.value == 20.0


def test_a_composite_is_no_way_around_a_call_before(call) -> None:
    """What a child wants to be called first is wanted before the composite that does not call it."""
    tools = [find_customer, ORDER, order_twice, order_for]
    refused, _, done, whole = results(
        tools,
        [call("order_twice", customer="C-Ada")],
        [call("find_customer", name="Ada")],
        [call("order_twice", customer="C-Ada")],
        [call("order_for", name="Bob")],
    )
    assert refused.failure.rule == (
        "call find_customer first; order, which this tool calls, needs it"
    )
    assert done.value == ["ordered for C-Ada"] * 2
    assert whole.value == "ordered for C-Bob"


# --- rule_problems --------------------------------------------------------------------------------

TOOL = ToolDefinition(
    name="book",
    signature=Signature(
        parameters={
            "type": "object",
            "properties": {
                "nights": {"type": "integer", "minimum": 1, "maximum": 30},
                "room": {"enum": ["single", "double"]},
                "city": {"type": "string"},
                "guest": {"anyOf": [{"$ref": "#/$defs/Guest"}, {"type": "null"}]},
                "prices": {"type": "array", "items": {"type": "number"}},
                "anything": True,
            },
            "$defs": {"Guest": {"type": "object", "properties": {"age": {"$ref": "#/$defs/Age"}}}, "Age": {"type": "integer"}},
        }
    ),
    examples=(
        Example(arguments={"nights": 2, "city": "Bergen"}, result="ok"),
        Example(arguments={"nights": 3, "city": "3"}, is_whole=False),
    ),
)  # fmt: skip

GOOD = [
    OneOf(parameter="nights", values=(1, 2, 7)),
    OneOf(parameter="anything", values=(None, True, "x", 1.5)),
    Between(parameter="nights", minimum=2, maximum=14, multiple_of=2, unit="nights"),
    Between(parameter="prices[]", minimum=0, multiple_of=0.01, unit="euros"),
    Form(parameter="city", pattern="[A-Z][a-z]{1,30}", words="a capitalised name", example="Oslo"),
    Requires(parameter="city", others=("nights",)),
    Condition(expression="nights < 10 or room == 'double'", words="long stays need a double room"),
    CallBefore(tool="weather_now", parameter="city"),
]
BAD: list[tuple[object, str]] = [
    (OneOf(parameter="nigths", values=(1,)), "unknown_parameter"),
    (OneOf(parameter="nights", values=()), "malformed"),
    (OneOf(parameter="nights", values=(2, 2.0)), "malformed"),
    (OneOf(parameter="anything", values=tuple(range(65))), "malformed"),
    (OneOf(parameter="anything", values=(math.inf,)), "malformed"),
    (OneOf(parameter="nights", values=(2, 31)), "outside_contract"),
    (OneOf(parameter="nights", values=(5, 6)), "example_breaks_rule"),
    (Between(parameter="nights"), "malformed"),
    (Between(parameter="nights", minimum="3"), "malformed"),
    (Between(parameter="nights", multiple_of=0), "malformed"),
    (Between(parameter="city", measure="length", minimum=1.5), "malformed"),
    (Between(parameter="city", measure="length", exclusive_maximum=3), "malformed"),
    (Between(parameter="nights", minimum=9, maximum=3), "contradiction"),
    (Between(parameter="nights", minimum=31), "contradiction"),
    (Between(parameter="city", minimum=1), "wrong_type"),
    (Form(parameter="city", format="postcode"), "malformed"),
    (Form(parameter="city", format="date", pattern="a"), "malformed"),
    (Form(parameter="city", pattern="(?=a)a", words="w"), "pattern_unsafe"),
    (Form(parameter="city", pattern="[A-Z].{1,20}", words="w", example="oslo"), "own_example"),
    (Form(parameter="room", pattern="[A-Z]{2}", words="w"), "contradiction"),
    (Requires(parameter="city", others=()), "malformed"),
    (Condition(expression="nights > 1", words=" "), "malformed"),
    (Condition(expression="nights >", words="w"), "expression_unreadable"),
    (Condition(expression="1 < 2", words="w"), "malformed"),
    (Condition(expression="nights > 2", words="w"), "example_breaks_rule"),
    (CallBefore(tool="no_such_tool"), "unknown_tool"),
]


@pytest.fixture(scope="module")
def library() -> Library:
    """A library with a tool named ``weather_now``."""
    return sample_library()


@pytest.mark.parametrize(("rule", "code"), BAD, ids=str)
def test_a_bad_rule_has_a_reason(rule, code, library) -> None:
    """Each problem has a code, a sentence with what is wrong, and a way out."""
    problems = rule_problems(rule, TOOL, library)
    assert [problem.code for problem in problems] == [code]
    assert all(problem.message and problem.advice for problem in problems)


@pytest.mark.parametrize(
    ("other", "rule"),
    [
        (OneOf(parameter="nights", values=(2, 4)), OneOf(parameter="nights", values=(1, 3))),
        (Between(parameter="nights", maximum=4), Between(parameter="nights", minimum=5)),
    ],
)
def test_rules_of_one_tool_must_leave_something(other, rule) -> None:
    """A rule is held against those that the tool has; with itself it does not collide."""
    bare = replace(TOOL, examples=())
    ruled = replace(bare, specification=Specification(rules=(other,)))
    both = replace(bare, specification=Specification(rules=(other, rule)))
    assert [problem.code for problem in rule_problems(rule, ruled)] == ["contradiction"]
    assert [problem.code for problem in rule_problems(other, both)] == ["contradiction"]
    assert rule_problems(rule, bare) == rule_problems(other, ruled) == ()


def test_bounds_that_meet_leave_a_value() -> None:
    """What is at least four and at most four may be four."""
    most = Specification(rules=(Between(parameter="nights", maximum=4),))
    bare = replace(TOOL, examples=(), specification=most)
    assert rule_problems(Between(parameter="nights", minimum=4), bare) == ()


# --- as JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "form"),
    [
        ((), 1),
        (tuple(GOOD), 2),
        ((Between(parameter="x", maximum=2**60),), 2),
        ((Between(parameter="x", measure="length", maximum=5),), 3),
        ((Takes(parameter="x", types=("string",)),), 4),
    ],
)
def test_rules_survive_json_text(rules, form) -> None:
    """A definition with rules is read back equal, with the same digest, in the oldest format."""
    definition = ToolDefinition(name="f", specification=Specification(rules=rules))
    record = definition.to_json()
    copy = ToolDefinition.from_json(json.loads(json.dumps(record)))
    assert copy == definition
    assert copy.digest == definition.digest
    assert copy.specification.rules == rules
    assert record["format"] == form
    with pytest.raises(DefinitionError, match="upgrade"):
        ToolDefinition.from_json({**record, "format": 5})
    assert all(rule_from_json(rule_to_json(rule)) == rule for rule in rules)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("one_of", "a rule is an object"),
        ([{"kind": "magic"}], "no rule of kind 'magic'"),
        ([{"kind": "one_of"}], "missing"),
        ([{"kind": "one_of", "parameter": 3, "values": []}], "`parameter` must be a string"),
        ([{"kind": "one_of", "parameter": "x", "values": "abc"}], "`values` must be a list"),
        (
            [{"kind": "one_of", "parameter": "x", "values": [], "extra": 1}],
            "`extra` is not a part of a rule of kind one_of",
        ),
        ([{"kind": "between", "parameter": "x", "minimum": True}], "`minimum` must be a number"),
        ([{"kind": "between", "parameter": "x", "maximum": math.inf}], "JSON does not have"),
    ],
)
def test_what_is_no_rule_is_refused(rules, message) -> None:
    """A record whose rules are of another shape is no definition, and the reason is given."""
    record = {"name": "f", "format": 2, "specification": {"rules": rules}}
    with pytest.raises(DefinitionError, match=message):
        ToolDefinition.from_json(record)
