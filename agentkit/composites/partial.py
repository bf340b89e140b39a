"""Preconditions against a part of the arguments: what is sure already, before a call is written.

``contracts`` judges a call, where a condition that can not be evaluated counts as violated. Here
it is the other way round: as long as a value is missing, or is not what the condition expects,
nothing is sure.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agentkit.composites import ir
from agentkit.composites.expressions import Expression
from agentkit.composites.limits import CONTRACT_LIMITS, CompositeLimits
from agentkit.composites.parser import parse_expression
from agentkit.errors import CompositeError, CompositeRunError
from agentkit.tools.definition import ToolDefinition


def surely_broken(
    definition: ToolDefinition,
    values: Mapping[str, Any],
    *,
    limits: CompositeLimits = CONTRACT_LIMITS,
) -> str | None:
    """A precondition that no call with these values can keep; None when there is none to be found.

    Of a condition joined by ``and``, each part is looked at alone: one that is false breaks the
    whole, whatever the others say. Parts that read a parameter without a value are unknown, and so
    are parts whose evaluation fails: the value may still be put differently.

    Args:
        definition: The tool.
        values: By parameter name, those that are known; JSON data.
        limits: Caps on the evaluation of each part.

    Returns:
        The condition as it was written.

    Example:
        >>> from agentkit.tools.decorator import tool
        >>> @tool(pre=["amount > 0 and months in [12, 24]"])
        ... def loan(amount: float, months: int) -> float:
        ...     '''A monthly rate.'''
        ...     return amount / months
        >>> surely_broken(loan.definition, {"months": 7})
        'amount > 0 and months in [12, 24]'
        >>> surely_broken(loan.definition, {"months": 12}) is None
        True
    """
    names = tuple(definition.signature.properties)
    for text in definition.specification.pre:
        if any(_is_false(part, values, limits) for part in _parts(text, names)):
            return text
    return None


def _is_false(part: Expression, values: Mapping[str, Any], limits: CompositeLimits) -> bool:
    if any(name not in values for name in part.reads):
        return False
    try:
        return not part.evaluate(values, limits=limits)
    except CompositeRunError:
        return False  # unknown: the value does not fit the condition in this form


@lru_cache(maxsize=2_048)
def _parts(text: str, names: tuple[str, ...]) -> tuple[Expression, ...]:
    """The parts of a condition that have to hold each; none of one that can not be read."""
    try:
        whole = parse_expression(text, names)
    except CompositeError:
        return ()  # the check of the call itself says why
    return tuple(Expression(one, text=text, names=names) for one in _conjuncts(whole))


def _conjuncts(expression: ir.Expression) -> list[ir.Expression]:
    if isinstance(expression, ir.Boolean) and expression.operator == "and":
        return [part for operand in expression.operands for part in _conjuncts(operand)]
    return [expression]
