"""Gold calls, run on the reference world."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.errors import ToolSignal
from agentkit.evaluation.expectations import GoldCall
from agentkit.evaluation.task import Environment
from agentkit.evaluation.verifiers.verdicts import described
from agentkit.messages import ToolFailure, ToolResult
from agentkit.tools.invocation import encode_result, run_in_daemon_thread
from agentkit.tools.tool import Tool

_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldRun:
    """What came of gold calls.

    Attributes:
        results: One result a call, up to the one that could not be run.
        problem: Why a call could not be run; empty when all ran.
    """

    results: tuple[ToolResult, ...] = ()
    problem: str = ""


async def run_gold(calls: Sequence[GoldCall], world: Environment) -> GoldRun:
    """Run gold calls on a world, one after the other.

    A call that returns an error as its value ran: BFCL's gold calls do. So did one whose tool
    raises ``ToolFailed`` or ``ModelRetry``, since the agent that makes it is told the same and the
    world is as it should be; its result is ``failed``. Any other exception, an absent tool and
    arguments that do not fit mean that the gold is broken.

    Args:
        calls: The calls; references to earlier results are not followed.
        world: Where they run. It is changed.
    """
    tools = {tool.name: tool for tool in world.tools()}
    results: list[ToolResult] = []
    for at, call in enumerate(calls):
        tool = tools.get(call.name)
        if tool is None or tool.function is None:
            problem = f"gold call {at} names {call.name!r}, which the world has no tool for"
            return GoldRun(results=tuple(results), problem=problem)
        try:
            async with asyncio.timeout(_SECONDS):
                results.append(await _result(call, tool, str(at)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - reported as the gold's problem
            problem = f"gold call {at} ({call.name}) failed with {described(error)}"
            return GoldRun(results=tuple(results), problem=problem)
    return GoldRun(results=tuple(results))


async def _result(call: GoldCall, tool: Tool, call_id: str) -> ToolResult:
    try:
        value, text = encode_result(await _called(tool, call))
    except ToolSignal as signal:
        failure = ToolFailure(kind="tool_failed", rule=signal.message, retryable=False)
        return ToolResult(call_id=call_id, name=call.name, status="failed", failure=failure)
    return ToolResult(call_id=call_id, name=call.name, status="ok", value=value, text=text)


async def _called(tool: Tool, call: GoldCall) -> Any:
    function = tool.function
    if function is None:
        raise TypeError(f"{tool.name} has no function in this process")
    keywords = tool.convert(call.arguments)
    if tool.is_async:
        return await function(**keywords)
    value = await run_in_daemon_thread(lambda: function(**keywords))
    return await value if inspect.isawaitable(value) else value
