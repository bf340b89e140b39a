"""Pre- and postconditions around the calls of a model."""

from __future__ import annotations

import pytest

from agentkit import Agent, tool
from agentkit.agent import ToolPolicy
from agentkit.testing import ScriptedModel


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
    assert "can not be read" in result.text
