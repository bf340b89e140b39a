"""Calling one child that has to be waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.interpreter.children import (
    Child,
    Place,
    Watch,
    adopted,
    begin_call,
    child_error,
    child_path,
    converted,
)
from agentkit.composites.interpreter.failures import run_error
from agentkit.composites.interpreter.frames import ACTIVATION, METER, Frame
from agentkit.composites.interpreter.weights import SCALARS
from agentkit.messages import JsonObject
from agentkit.tools.invocation import run_in_daemon_thread
from agentkit.tools.tool import Tool

AwaitCall: TypeAlias = Callable[[Frame, JsonObject], Awaitable[Any]]


def awaited_call(child: Child, node: ir.Call) -> AwaitCall:
    """A coroutine function that calls the child with arguments and gives its result."""

    async def run(frame: Frame, arguments: JsonObject) -> Any:
        begin_call(frame, node, arguments)
        if not frame[ACTIVATION].watched:
            return await _answer(child, frame, node, arguments, ())
        watch = Watch(child, frame, node, arguments)
        try:
            watch.before()
            result = await _answer(child, frame, node, arguments, watch.place)
            watch.after(result)
        except BaseException as error:
            watch.tell(error=error)
            raise
        watch.tell(result=result)
        return result

    return run


async def _answer(
    child: Child, frame: Frame, node: ir.Call, arguments: JsonObject, place: Place
) -> Any:
    """What the child returns; a permit is held only while a function runs, never while waiting."""
    if child.has_rules:
        child.check_rules(frame, node, arguments)
    if child.composite is not None:
        inside = child.composite.enter_async(arguments, frame[METER], frame[ACTIVATION], place)
        return await _in_time(inside, child, frame, node)
    if child.always_validated:
        child.validate(frame, node, arguments)
    arguments = converted(frame, node, child.tool.convert, arguments)
    async with frame[METER].permits:
        running = _invoked(child.tool, frame, node, arguments)
        result = await _in_time(running, child, frame, node)
    return result if type(result) in SCALARS else adopted(frame, node, result)


async def _in_time(
    work: Coroutine[Any, Any, Any], child: Child, frame: Frame, node: ir.Call
) -> Any:
    """The outcome of the work, unless it takes longer than the child's own timeout."""
    seconds = child.tool.timeout_seconds
    if seconds is None:
        return await work
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            return await work
    except TimeoutError as error:
        if not timeout.expired():
            raise
        frame[METER].interrupted.clear()
        what = f"it was stopped after {seconds:g} seconds"
        raise run_error(child_path(frame, node), node, "child_timeout", what) from error


async def _invoked(tool: Tool, frame: Frame, node: ir.Call, arguments: JsonObject) -> Any:
    """The function's answer; a function that blocks runs in a thread of its own."""
    try:
        if tool.is_async:
            return await tool(**arguments)
        result = await run_in_daemon_thread(lambda: tool(**arguments))
        return await result if isinstance(result, Awaitable) else result
    except asyncio.CancelledError:
        frame[METER].interrupted.append((child_path(frame, node), node))
        raise
    except (Exception, SystemExit) as error:
        raise child_error(frame, node, error) from error
