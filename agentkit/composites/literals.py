"""JSON values as expressions, for programs that no parser made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agentkit.composites import ir
from agentkit.composites.decoding import is_negative
from agentkit.errors import UsageError


def literal_of(value: Any) -> ir.Expression:
    """The expression that the parser reads for a JSON value.

    A negative number is a sign before a constant, as in Python's own grammar; ``program_from_json``
    takes no other form, so that each program has one digest.

    Raises:
        UsageError: The value is no JSON, or nested beyond what a program may hold.

    Example:
        >>> from agentkit.composites.render import render_expression
        >>> render_expression(literal_of({"rate": -0.5, "terms": [36, None]}))
        '{"rate": -0.5, "terms": [36, None]}'
    """
    try:
        return _expression(value)
    except RecursionError as error:
        raise UsageError("the value is nested too deeply for a literal") from error


def _expression(value: Any) -> ir.Expression:
    if isinstance(value, list | tuple):
        return ir.ListLiteral(items=tuple([_expression(item) for item in value]))
    if isinstance(value, Mapping):
        return ir.DictLiteral(
            keys=tuple([_expression(key) for key in value]),
            values=tuple([_expression(item) for item in value.values()]),
        )
    if value is None or isinstance(value, bool | str):
        return ir.Constant(value=value)
    if not isinstance(value, int) and not (isinstance(value, float) and math.isfinite(value)):
        what = type(value).__name__
        raise UsageError(f"only JSON values have a literal, got a {what}: {value!r}")
    if is_negative(value):
        return ir.Unary(operator="-", operand=ir.Constant(value=-value))
    return ir.Constant(value=value)
