"""Calls that can not run as they are: of the wrong shape, or against a contract."""

from __future__ import annotations

import math

import pytest

from agentkit import Agent, Tool, ToolDefinition, tool
from agentkit.agent import ToolPolicy
from agentkit.episodes.files import encode_episode
from agentkit.messages import ToolCall
from agentkit.models.wire import WireNames, decode_call
from agentkit.testing import ScriptedModel


async def only_result(model_calls, *tools, **options):
    rounds = [model_calls] * (2 if "refine" in options else 1)
    model = ScriptedModel([*rounds, "done"])
    result = await Agent(model, tools=tools, **options).run("go")
    assert result.output == "done"
    return result.episode.results[0]


async def test_wrong_type(add, call):
    """The broken rule, the value and the schema are named; the tool does not run."""
    result = await only_result([call("add", a="three", b=2)], add)

    assert result.status == "failed"
    assert result.failure.kind == "invalid_arguments"
    assert result.failure.path == "a"
    assert "integer" in result.text
    assert "three" in result.text
    assert "Schema of a:" in result.text


async def test_a_clearly_meant_type_is_mended(add, call):
    """The text "3" for an integer is taken as 3, which saves a round trip."""
    result = await only_result([call("add", a="3", b=2)], add)

    assert result.value == 5


async def test_unknown_tool(add, call):
    """An unknown name is answered with the nearest one."""
    result = await only_result([call("ad", a=1, b=2)], add)

    assert result.failure.kind == "unknown_tool"
    assert result.failure.nearest == ("add",)


async def test_a_tool_that_was_not_offered_is_unknown(add, call):
    """The library may hold more than the model was offered; only the offered may be called."""
    from agentkit.retrieval.retriever import Retrieval

    class OffersNothing:
        async def retrieve(self, query, library):
            return Retrieval(query=query, hits=(), offered=(), cards="", tokens=0)

    result = await only_result([call("add", a=1, b=2)], add, retriever=OffersNothing())

    assert result.failure.kind == "unknown_tool"


async def test_malformed_json(add):
    """Argument text that is not a JSON object is shown back."""
    broken = ToolCall(call_id="1", name="add", malformed='{"a": 1, ')

    result = await only_result([broken], add)

    assert result.failure.kind == "malformed_arguments"
    assert '{"a": 1, ' in result.text


async def test_arguments_nested_without_end(add, call):
    """Absurdly deep arguments fail as malformed instead of exhausting the stack."""
    deep: dict[str, object] = {}
    for _ in range(900):
        deep = {"a": deep}

    result = await only_result([call("add", a=deep, b=1)], add, refine="adaptive")

    assert result.failure.kind == "malformed_arguments"


@pytest.mark.parametrize("value", ["1e400", "-1e400", '[{"x": 1e400}]'])
async def test_no_number_beyond_all_bounds_is_an_argument(value, store):
    """Of the model, of its programs and of what it answers: each reads why, and no record holds it."""

    @tool
    def take(x: object) -> str:
        """Take it."""
        raise AssertionError("never run")

    made = decode_call("1", "take", f'{{"x": {value}}}', WireNames(["take"]))
    model = ScriptedModel([[made], '{"x": 1e400}', '{"x": 1}'])
    agent = Agent(model, tools=[take], store=store, output_type={"type": "object"})
    result = await agent.run("go")
    assert result.episode.results[0].failure.kind == "malformed_arguments"
    assert "beyond all bounds" in result.episode.results[0].text
    assert result.output == {"x": 1}
    program = ToolCall(call_id="1", name="run_program", arguments={"program": "take(x=1e308 * 10)"})
    again = Agent(ScriptedModel([[program], "done"]), tools=[take], store=store, code_mode=True)
    assert "JSON cannot hold" in (await again.run("go")).episode.results[0].text
    assert not any("Infinity" in encode_episode(one) for one in store.select())


def test_such_an_argument_in_an_older_record_is_text():
    """So that what waits with one can be read, listed and refused."""
    kept = ToolCall.from_json({"call_id": "1", "name": "pay", "arguments": {"x": math.inf}})
    assert (kept.arguments, kept.malformed) == ({}, "{'x': inf}")


async def test_a_broken_schema_fails_the_call_only(call):
    """A definition with an unusable schema is reported to the model as the tool's fault."""
    schema = {"type": "object", "properties": {"a": {"type": "nonsense"}}}
    broken = Tool(definition=ToolDefinition.from_schema("odd", "", schema), function=print)

    result = await only_result([call("odd", a=1)], broken)

    assert result.failure.kind == "tool_error"
    assert not result.failure.retryable


@tool(pre=["b != 0"])
def div(a: float, b: float) -> float:
    """A quotient."""
    return a / b


@tool(post=["result >= 0"])
def wrong_root(x: float) -> float:
    """A square root with a mistake in it."""
    return -(x**0.5)


def run(call, name, arguments, **options):
    model = ScriptedModel([[call(name, **arguments)], "done"])
    result = Agent(model, tools=[div, wrong_root], **options).run_sync("go")
    return result.episode.results[0]


def test_broken_precondition_is_told_before_the_tool_runs(call):
    """A call outside the tool's contract is not run; the model reads the condition and values."""
    result = run(call, "div", {"a": 1, "b": 0}, tool_policy=ToolPolicy(contracts="always"))

    assert result.failure.kind == "contract_violated"
    assert result.failure.cause == "precondition"
    assert result.failure.retryable
    assert "`b != 0` does not hold for b = 0" in result.text


def test_broken_postcondition_is_final(call):
    """A result outside the contract is withheld, and trying again is not suggested."""
    result = run(call, "wrong_root", {"x": 4.0}, tool_policy=ToolPolicy(contracts="always"))

    assert (result.failure.kind, result.failure.cause) == ("contract_violated", "postcondition")
    assert not result.failure.retryable
    assert "result = -2.0" in result.text


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [("wrong_root", {"x": 4.0}, None), ("div", {"a": 1, "b": 0}, "tool_error")],
)
def test_contracts_are_off_by_default(call, name, arguments, kind):
    """Without the option no condition is evaluated: the tool runs and says what it says."""
    failure = run(call, name, arguments).failure

    assert (failure.kind if failure else None) == kind


def test_condition_that_can_not_be_read_counts_as_broken(call):
    """A condition outside the language never passes silently."""

    @tool(pre=["a.b.c > 0"])
    def odd(a: int) -> int:
        """Anything."""
        return a

    model = ScriptedModel([[call("odd", a=1)], "done"])
    result = (
        Agent(model, tools=[odd], tool_policy=ToolPolicy(contracts="always"))
        .run_sync("go")
        .episode.results[0]
    )

    assert result.failure.kind == "contract_violated"
    assert "cannot be read" in result.text
