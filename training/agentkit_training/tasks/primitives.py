"""The primitive library: five operations on numbers, and a world that keeps the last result."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, TypeAlias

from agentkit.errors import ModelRetry
from agentkit.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.tool import Tool

Operation: TypeAlias = Literal["add", "sub", "mul", "div", "floor_div"]
"""The primitives, under the names that ``replay_solution`` has for the operators of GSM8K."""

Number: TypeAlias = int | float

_FUNCTIONS: Mapping[Operation, tuple[str, Callable[[Number, Number], Number]]] = {
    "add": ("Add b to a.", lambda a, b: a + b),
    "sub": ("Take b from a.", lambda a, b: a - b),
    "mul": ("Multiply a by b.", lambda a, b: a * b),
    "div": ("Divide a by b.", lambda a, b: a / b),
    "floor_div": ("How many times b goes into a as a whole.", lambda a, b: a // b),
}
OPERATIONS: tuple[Operation, ...] = tuple(_FUNCTIONS)

_DIGITS = 9


class Calculator:
    """The primitives, bound, and the last number that they gave: an ``Environment``.

    A composite runs the same primitives, so that the world does not tell solutions with composites
    from those without.

    Args:
        operations: Which of the primitives there are.

    Example:
        >>> world = Calculator()
        >>> {tool.name: tool for tool in world.tools()}["mul"](a=6, b=7)
        42
        >>> world.state()
        {'result': 42}
    """

    def __init__(self, operations: Collection[Operation] = OPERATIONS) -> None:
        self._operations = tuple(operations)
        self._result: Number | None = None

    def tools(self) -> Sequence[Tool]:
        """The primitives."""
        return tuple(self._tool(name) for name in self._operations)

    def state(self) -> JsonObject:
        """The last number; None before the first."""
        return {"result": self._result}

    def _tool(self, name: Operation) -> Tool:
        def call(a: Number, b: Number) -> Number:
            self._result = calculated(name, a, b)
            return self._result

        number = {"type": "number"}
        definition = ToolDefinition.from_schema(
            name,
            _FUNCTIONS[name][0],
            {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
            result=number,
            effects=Effects.pure(),
        )
        return Tool(definition=definition, function=call)


def primitive_library(operations: Collection[Operation] = OPERATIONS) -> Library:
    """The primitives as a library, bound to a calculator of their own."""
    return Library(Calculator(operations).tools())


def calculated(name: Operation, a: Number, b: Number) -> Number:
    """One calculation; a whole number is an integer.

    Raises:
        ModelRetry: There is no such number, or none that JSON can hold.

    Example:
        >>> calculated("div", 84, 2)
        42
    """
    try:
        value = _FUNCTIONS[name][1](a, b)
        is_finite = math.isfinite(value)
    except (ZeroDivisionError, OverflowError) as error:
        raise ModelRetry(f"{name} of {a} and {b} is no number: {error}") from error
    if not is_finite:
        raise ModelRetry(f"{name} of {a} and {b} is no finite number; use smaller ones")
    rounded = round(value, _DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded
