"""Calling one child, primitive or composite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import CoroutineType
from typing import Any

from agentkit.errors import ToolSignal
from agentkit.messages import JsonObject
from agentkit.tools.composite import ir
from agentkit.tools.composite.interpreter.failures import (
    FAILURES,
    located,
    repeated_signal,
    run_error,
)
from agentkit.tools.composite.interpreter.frames import ACTIVATION, METER, Evaluate, Frame
from agentkit.tools.composite.interpreter.guard import Guard
from agentkit.tools.composite.interpreter.lowering import fail
from agentkit.tools.composite.interpreter.weights import SCALARS
from agentkit.tools.encoding import UnserialisableError, encode_result
from agentkit.tools.tool import Tool


class Child:
    """A tool that a composite calls."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.name = tool.name

    def lower(self, node: ir.Call, arguments: Sequence[Evaluate]) -> Evaluate:
        """A closure that calls the child and gives its result."""
        names = tuple(argument.name for argument in node.arguments)
        call = self._primitive(node)

        def run(frame: Frame) -> Any:
            return call(frame, {n: value(frame) for n, value in zip(names, arguments)})

        return run

    def _primitive(self, node: ir.Call):
        function = self.tool.function
        name = self.name
        convert = self.tool.convert

        def call(frame: Frame, arguments: JsonObject) -> Any:
            begin_call(frame, node, arguments)
            try:
                result = function(**convert(arguments))
            except (Exception, SystemExit) as error:
                raise child_error((*frame[ACTIVATION].path, name), node, error) from error
            return result if type(result) in SCALARS else adopted(frame, node, name, result)

        return call


def begin_call(frame: Frame, node: ir.Call, arguments: JsonObject) -> None:
    """Count a call, look at the clock, and weigh what is handed over."""
    meter = frame[METER]
    meter.calls -= 1
    try:
        meter.check_call()
        for value in arguments.values():
            if type(value) not in SCALARS:
                meter.cross(value)
    except FAILURES as error:
        raise located((*frame[ACTIVATION].path, node.child), node, error) from error


def child_error(path: Sequence[str], node: ir.Call, error: BaseException) -> BaseException:
    """What a run raises for what a child raised."""
    if isinstance(error, ToolSignal):
        return repeated_signal(path, error)
    return run_error(path, node, "child_failed", f"{type(error).__name__}: {error}")


def adopted(frame: Frame, node: ir.Call, name: str, result: Any) -> Any:
    """A child's result as JSON data, paid for at an eighth of its weight."""
    try:
        try:
            frame[METER].cross(result)
        except Guard as error:
            if error.code != "opaque_value":
                raise
            result = plain(result)
            frame[METER].cross(result)
    except UnserialisableError as error:
        path = (*frame[ACTIVATION].path, name)
        raise run_error(path, node, "unserialisable_result", str(error)) from error
    except FAILURES as error:
        fail(frame, node, error)
    return result


def plain(result: Any) -> Any:
    """Data of exactly the types of JSON, as a model would see them.

    Raises:
        UnserialisableError: JSON can not hold the result.
    """
    if isinstance(result, CoroutineType):
        result.close()
        raise UnserialisableError("It returned a coroutine, but is not declared async")
    data, text = encode_result(result)
    return text if isinstance(data, str) else json.loads(text)
