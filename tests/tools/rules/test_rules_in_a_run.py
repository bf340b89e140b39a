"""Learned rules around the calls of a model: refused early, explained, diagnosed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agentkit import Agent, composite, tool
from agentkit.errors import ToolFailed
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models.chat_completions import encode_tool
from agentkit.models.grammar import call_schema
from agentkit.models.prompt_format import render_tools
from agentkit.testing import ScriptedModel
from agentkit.tools import (
    CallBefore,
    Effects,
    OneOf,
    Tool,
)

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
