"""Spans of the calls that composites make."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.trace import StatusCode

from agentkit import Agent, tool
from agentkit.agent import ToolPolicy
from agentkit.library.library import Library
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import Effects


def ask(library: Library, tracer: object, name: str, **arguments: object):
    """One run that calls one tool."""
    call = ToolCall(call_id="c1", name=name, arguments=arguments)
    agent = Agent(
        ScriptedModel([[call], "Done."]),
        library=library,
        tracing=tracer,
        tool_policy=ToolPolicy(retries=0),
    )
    return agent.run_sync("Go.")


def test_all_calls_are_told_each_below_its_composite(telemetry, composites) -> None:
    """With ``all`` the tree of spans is the tree of calls, in program order."""
    ask(composites, telemetry.tracing(child_spans="all"), "both", x=2)
    assert telemetry.tree() == [
        "invoke_agent agent",
        "  chat scripted",
        "  execute_tool both",
        "    execute_tool half",
        "      execute_tool double",
        "      execute_tool invert",
        "    execute_tool double",
        "  chat scripted",
    ]
    levels = [span.attributes.get("agentkit.tool.level") for span in telemetry.spans]
    assert [level for level in levels if level] == [1, 2, 2, 1]


def test_a_composite_that_succeeds_has_no_children_by_default(telemetry, composites) -> None:
    """Nobody looks into what went well."""
    ask(composites, telemetry.tracing(), "both", x=2)
    assert [name.strip() for name in telemetry.tree()[2:4]] == [
        "execute_tool both",
        "chat scripted",
    ]


@pytest.mark.parametrize("wanted", ["errors", "all"])
def test_a_composite_that_fails_tells_all_that_led_to_it(telemetry, composites, wanted) -> None:
    """Its calls are there up to the one that failed, which has the kind of its error."""
    ask(composites, telemetry.tracing(child_spans=wanted), "both", x=0)
    assert telemetry.tree()[2:6] == [
        "  execute_tool both",
        "    execute_tool half",
        "      execute_tool double",
        "      execute_tool invert",
    ]
    failed = {s.name: s for s in telemetry.spans if s.status.status_code is StatusCode.ERROR}
    kinds = {name: span.attributes["error.type"] for name, span in failed.items()}
    assert kinds == {
        "execute_tool both": "child_failed",
        "execute_tool half": "ZeroDivisionError",
        "execute_tool invert": "ZeroDivisionError",
    }


def test_no_children_are_told_when_switched_off(telemetry, composites) -> None:
    """With ``off`` a failed composite is one span."""
    ask(composites, telemetry.tracing(child_spans="off"), "both", x=0)
    assert len(telemetry.spans) == 4


def test_children_of_loops_hang_below_their_composite(telemetry, composing) -> None:
    """Places of loops are no calls."""

    @tool
    def double(x: float) -> float:
        """Twice a number."""
        return 2 * x

    text = "def many(n: int) -> list[float]:\n    return [double(i) for i in range(n)]"
    library = composing([double], text)
    ask(library, telemetry.tracing(child_spans="all"), "many", n=3)
    assert telemetry.tree()[2:6] == ["  execute_tool many", *["    execute_tool double"] * 3]


def test_a_child_that_hangs_is_told_when_time_is_up(telemetry, composing) -> None:
    """Of a composite that timed out one sees where it was."""

    @tool(effects=Effects(reads=True, writes=False))
    async def hang(x: int) -> int:
        """Never answer."""
        await asyncio.sleep(3600)
        return x

    library = composing([hang], "def wait(x: int) -> int:\n    return hang(x)")
    call = ToolCall(call_id="c1", name="wait", arguments={"x": 1})
    Agent(
        ScriptedModel([[call], "Done."]),
        library=library,
        tracing=telemetry.tracing(),
        tool_policy=ToolPolicy(timeout_seconds=0.02, retries=0),
    ).run_sync("Go.")
    assert telemetry.named("execute_tool wait").attributes["error.type"] == "timeout"
    assert telemetry.named("execute_tool hang").attributes["error.type"] == "CancelledError"
