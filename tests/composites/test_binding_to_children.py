"""A stored composite runs with the children that it was made with, and with no others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from agentkit import Agent, ModelRetry, tool
from agentkit.agent import ToolPolicy
from agentkit.agent.types import Approval
from agentkit.composites.composite import composite_tool
from agentkit.composites.source import compose
from agentkit.errors import CompositeError
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


@tool(pre=["b != 0"])
def divide(a: float, b: float) -> float:
    """A quotient."""
    return a / b


@tool
def add(a: float, b: float) -> float:
    """A sum."""
    return a + b


@tool(effects=("reads",))
async def look_up(name: str) -> float:
    """A price."""
    await asyncio.sleep(0)
    return float(len(name))


@tool(effects=("destructive",))
def delete(name: str) -> str:
    """Delete something."""
    return f"deleted {name}"


@tool
def book(day: str) -> str:
    """Book a day."""
    if day == "Sunday":
        raise ModelRetry("we are closed on Sunday")
    return f"booked {day}"


TOOLS: Mapping[str, Tool] = {entry.name: entry for entry in (divide, add, look_up, delete, book)}
MEAN = "def mean(a: float, b: float, n: float = 2.0) -> float:\n    return divide(add(a, b), n)\n"


def stored(source: str) -> ToolDefinition:
    """A definition as a store gives it back."""
    return ToolDefinition.from_json(compose(source, TOOLS).to_json())


def call(tool_name: str, **arguments: object) -> ToolCall:
    """A call of a scripted model."""
    return ToolCall(call_id="1", name=tool_name, arguments=arguments)


def test_a_missing_child_is_named() -> None:
    """Without a pinned child there is nothing to run."""
    with pytest.raises(
        CompositeError, match="calls 'divide', which is not in the library"
    ) as caught:
        composite_tool(stored(MEAN), {"add": add})
    assert [problem.code for problem in caught.value.problems] == ["missing_child"]
    assert caught.value.tool_name == "mean"


def test_a_changed_child_is_named_with_both_digests() -> None:
    """A child of another digest may do something else; validate again."""
    changed = replace(add, definition=replace(add.definition, examples=()))
    other = changed.with_definition(
        ToolDefinition.from_schema("add", "Another sum.", dict(add.definition.parameters_schema))
    )
    with pytest.raises(CompositeError) as caught:
        composite_tool(stored(MEAN), {**TOOLS, "add": other})
    (problem,) = caught.value.problems
    assert problem.code == "changed_child"
    assert add.definition.digest[:12] in problem.message
    assert other.definition.digest[:12] in problem.message
    assert "again" in problem.advice


def test_a_body_that_calls_more_than_its_pins_is_refused() -> None:
    """Pins are checked against the program, not believed."""
    definition = stored(MEAN)
    lying = replace(
        definition,
        signature=replace(definition.signature, children=definition.signature.children[:1]),
    )
    with pytest.raises(CompositeError):
        composite_tool(lying, TOOLS)


def test_a_composite_needs_the_approval_that_a_child_needs() -> None:
    """What a person has to allow alone, a person has to allow inside a composite."""
    destructive = composite_tool(stored("def f(n: str):\n    return delete(n)\n"), TOOLS)
    assert destructive.needs_approval
    allowed = {**TOOLS, "delete": replace(delete, requires_approval=False)}
    assert not composite_tool(destructive.definition, allowed).needs_approval
    asked = {**TOOLS, "add": replace(add, requires_approval=True)}
    assert composite_tool(stored(MEAN), asked).needs_approval


def test_a_retry_asked_for_by_a_child_reaches_the_model() -> None:
    """``ModelRetry`` keeps its meaning through a composite, and says which child speaks."""
    week = composite_tool(stored("def book_day(day: str):\n    return book(day)\n"), TOOLS)
    model = ScriptedModel(
        [[call("book_day", day="Sunday")], [call("book_day", day="Monday")], "Booked."]
    )
    results = Agent(model, tools=[week]).run_sync("Book me a day").episode.results
    assert [outcome.status for outcome in results] == ["failed", "ok"]
    assert results[0].failure is not None
    assert results[0].failure.kind == "retry_requested"
    assert "book_day → book: we are closed on Sunday" in results[0].text


@pytest.mark.parametrize("approved", [True, False])
def test_a_person_is_asked_before_a_destructive_composite(*, approved: bool) -> None:
    """Without approval the run is deferred; with it the answer decides."""
    clean = composite_tool(stored("def clean(name: str):\n    return delete(name)\n"), TOOLS)
    script = [[call("clean", name="x")], "Done."]
    waiting = Agent(ScriptedModel(script), tools=[clean]).run_sync("Clean up")
    assert waiting.stop_reason == "deferred"
    decided = Agent(
        ScriptedModel(script),
        tools=[clean],
        tool_policy=ToolPolicy(approve=lambda *_: Approval(approved=approved)),
    ).run_sync("Clean up")
    (outcome,) = decided.episode.results
    assert outcome.status == ("ok" if approved else "denied")
