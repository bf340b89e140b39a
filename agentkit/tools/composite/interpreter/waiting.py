"""Calling one child that has to be waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.composite import ir
from agentkit.tools.composite.interpreter.children import (
    Child,
    Place,
    Watch,
    adopted,
    begin_call,
    child_error,
    child_path,
    converted,
)
from agentkit.tools.composite.interpreter.failures import run_error
from agentkit.tools.composite.interpreter.frames import ACTIVATION, METER, Frame
from agentkit.tools.composite.interpreter.weights import SCALARS
from agentkit.tools.threads import run_in_daemon_thread
from agentkit.tools.tool import Tool

AwaitCall: TypeAlias = Callable[[Frame, JsonObject], Awaitable[Any]]


def awaited_call(child: Child, node: ir.Call) -> AwaitCall:
    """A coroutine function that calls the child with arguments and gives its result."""

    async def run(frame: Frame, arguments: JsonObject) -> Any:
        begin_call(frame, node, arguments)
        if not frame[ACTIVATION].watched:
            return await _in_time(child, frame, node, arguments, ())
        watch = Watch(child, frame, node, arguments)
        try:
            watch.before()
            result = await _in_time(child, frame, node, arguments, watch.place)
            watch.after(result)
        except BaseException as error:
            watch.tell(error=error)
            raise
        watch.tell(result=result)
        return result

    return run


async def _in_time(
    child: Child, frame: Frame, node: ir.Call, arguments: JsonObject, place: Place
) -> Any:
    """The call, within the child's own timeout."""
    seconds = child.tool.timeout_seconds
    if seconds is None:
        return await _answer(child, frame, node, arguments, place)
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            return await _answer(child, frame, node, arguments, place)
    except TimeoutError as error:
        if not timeout.expired():
            raise
        frame[METER].interrupted.clear()
        what = f"it was stopped after {seconds:g} seconds"
        raise run_error(child_path(frame, node), node, "child_timeout", what) from error


async def _answer(
    child: Child, frame: Frame, node: ir.Call, arguments: JsonObject, place: Place
) -> Any:
    if child.composite is not None:
        meter, activation = frame[METER], frame[ACTIVATION]
        return await child.composite.enter_async(arguments, meter, activation, place)
    if child.always_validated:
        child.validate(frame, node, arguments)
    arguments = converted(frame, node, child.tool.convert, arguments)
    async with frame[METER].permits:
        try:
            result = await _invoked(child.tool, arguments)
        except asyncio.CancelledError:
            frame[METER].interrupted.append((child_path(frame, node), node))
            raise
        except (Exception, SystemExit) as error:
            raise child_error(frame, node, error) from error
    return result if type(result) in SCALARS else adopted(frame, node, result)


async def _invoked(tool: Tool, arguments: JsonObject) -> Any:
    """The function's answer; a function that blocks runs in a thread of its own."""
    if tool.is_async:
        return await tool(**arguments)
    result = await run_in_daemon_thread(lambda: tool(**arguments))
    return await result if isinstance(result, Awaitable) else result
