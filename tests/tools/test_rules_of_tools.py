"""Learned rules around the calls of a model, and what is wrong with a rule."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from agentkit import Agent, Library, ToolDefinition, composite, tool
from agentkit.composites import rule_problems
from agentkit.errors import DefinitionError, ToolFailed
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models.chat_completions import encode_tool
from agentkit.models.grammar import call_schema
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
    Tool,
    rule_from_json,
    rule_to_json,
)
from agentkit.tools.rules.checking import demanded

# --- refused, explained, corrected ----------------------------------------------------------------

PERIODS = OneOf(parameter="periods", values=(36, 48, 60))


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


def test_a_call_that_breaks_a_rule_never_runs(call) -> None:
    """The model reads the rule, what is allowed and what to do; a second try goes through."""
    ran = []

    @tool
    def order(periods: int) -> str:
        """Order."""
        ran.append(periods)
        return "ordered"

    refused, done = results(
        [learned(order, PERIODS)], [call("order", periods=40)], [call("order", periods=48)]
    )
    assert refused.status == "failed"
    assert refused.text == (
        "The call to order was not run, because it breaks a rule of the tool. "
        "`periods` must be one of 36, 48, 60, got the number 40.\n"
        'Schema of periods: {"type": "integer", "enum": [36, 48, 60]}\n'
        "Nearest: 36, 48, 60.\n"
        "Change the arguments as the rule says, and call it again."
    )
    assert done.value == "ordered"
    assert ran == [48]


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
    ("customer", "status"),
    [
        ("C-17", "ok"),
        ("C-1", "failed"),
        ("", "failed"),
        ("大阪", "ok"),
    ],
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
    [
        ('{"id":"C-Ada"}', "ok"),
        ("find_customer failed. There is nobody: C-Ada.", "failed"),
    ],
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


def test_what_a_tool_demands_is_not_the_tool_itself() -> None:
    """The chain of demands ends where it comes back; a tool that is not there is told."""
    round_ = [
        learned(find_customer, CallBefore(tool="order")),
        learned(order, FIRST, CallBefore(tool="gone")),
    ]
    found = demanded(round_[1].definition, Library(round_))
    assert found == {"find_customer": round_[0].definition, "gone": None}


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


# --- diagnosis ------------------------------------------------------------------------------------


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
                "a.b": {},
                "a": {"properties": {"b": {}}},
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
    (OneOf(parameter="a.b", values=(1,)), "ambiguous_parameter"),
    (OneOf(parameter="nights", values=()), "empty_rule"),
    (OneOf(parameter="nights", values=(2, 2.0)), "repeated_values"),
    (OneOf(parameter="anything", values=tuple(range(65))), "too_many_values"),
    (OneOf(parameter="anything", values=(math.inf,)), "unusable_number"),
    (OneOf(parameter="nights", values=(2, 31)), "outside_contract"),
    (OneOf(parameter="nights", values=(5, 6)), "example_breaks_rule"),
    (Between(parameter="nights", minimum="3"), "malformed"),
    (Between(parameter="nights", minimum=9, maximum=3), "reversed_bounds"),
    (Between(parameter="nights", minimum=math.nan), "unusable_number"),
    (Between(parameter="nights", minimum=31), "contradiction"),
    (Between(parameter="city", minimum=1), "wrong_type"),
    (Form(parameter="city", format="postcode"), "format_unknown"),
    (Form(parameter="city", pattern="(?=a)a", words="w"), "pattern_unsafe"),
    (Form(parameter="city", pattern="[A-Z].{1,20}"), "no_words"),
    (Form(parameter="city", pattern="[A-Z].{1,20}", words="w", example="oslo"), "own_example"),
    (Form(parameter="room", pattern="[A-Z]{2}", words="w"), "contradiction"),
    (Requires(parameter="city", others=()), "empty_rule"),
    (Condition(expression="nights > 1", words=" "), "no_words"),
    (Condition(expression="nights >", words="w"), "expression_unreadable"),
    (Condition(expression="1 < 2", words="w"), "empty_rule"),
    (Condition(expression="nights > 2", words="w"), "example_breaks_rule"),
    (CallBefore(tool="no_such_tool"), "unknown_tool"),
]


@pytest.fixture(scope="module")
def library() -> Library:
    """A library with a tool named ``weather_now``."""
    return sample_library()


@pytest.mark.parametrize("rule", GOOD, ids=str)
def test_a_good_rule_has_no_problem(rule, library) -> None:
    """What narrows the contract, and lets the worked examples pass, is fine."""
    assert rule_problems(rule, TOOL, library) == ()


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


def test_a_path_that_could_be_followed_for_ever_is_not() -> None:
    """Alternatives that multiply at each step of a path, or of a type, are followed so far only."""
    node = {"anyOf": [{"properties": {"a": {"$ref": "#/$defs/Node"}}}] * 8}
    loop = {"anyOf": [{"$ref": "#/$defs/Loop"}] * 8}
    parameters = {"properties": {"a": {"$ref": "#/$defs/Node"}, "b": {"$ref": "#/$defs/Loop"}}}
    definition = ToolDefinition(
        name="f",
        signature=Signature(parameters={**parameters, "$defs": {"Node": node, "Loop": loop}}),
    )
    assert rule_problems(OneOf(parameter=".".join("a" * 60), values=(1,)), definition) == ()
    assert rule_problems(Between(parameter="b", minimum=1), definition) == ()


# --- what stands in the place of a rule -----------------------------------------------------------

# --- as JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [(), tuple(GOOD), (Between(parameter="x", maximum=2**60),)])
def test_rules_survive_json_text(rules) -> None:
    """A definition with rules is read back equal, with the same digest; it is of format 2."""
    definition = ToolDefinition(name="f", specification=Specification(rules=rules))
    record = definition.to_json()
    copy = ToolDefinition.from_json(json.loads(json.dumps(record)))
    assert copy == definition
    assert copy.digest == definition.digest
    assert copy.specification.rules == rules
    assert record["format"] == (2 if rules else 1)
    assert all(rule_from_json(rule_to_json(rule)) == rule for rule in rules)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("one_of", "a rule is an object"),
        ([{"kind": "magic"}], "no rule of kind 'magic'"),
        ([{"kind": "one_of"}], "missing"),
        ([{"kind": "one_of", "parameter": 3, "values": []}], "parameter of a rule .* is a text"),
        ([{"kind": "one_of", "parameter": "x", "values": "abc"}], "values .* is a list"),
        ([{"kind": "one_of", "parameter": "x", "values": [], "extra": 1}], "no part 'extra'"),
        ([{"kind": "between", "parameter": "x", "minimum": True}], "minimum .* is a number"),
        ([{"kind": "between", "parameter": "x", "maximum": math.inf}], "maximum .* is a number"),
    ],
)
def test_what_is_no_rule_is_refused(rules, message) -> None:
    """A record whose rules are of another shape is no definition, and the reason is given."""
    record = {"name": "f", "format": 2, "specification": {"rules": rules}}
    with pytest.raises(DefinitionError, match=message):
        ToolDefinition.from_json(record)
