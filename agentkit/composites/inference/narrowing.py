"""What a test tells about the variables it looks at."""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.composites import ir
from agentkit.composites.inference.shape import ANYTHING, Shape, of_constant


def narrowed(
    names: Mapping[str, Shape], test: ir.Expression, *, truth: bool
) -> Mapping[str, Shape] | None:
    """The variables behind a test that came out ``truth``; None when it can not come out so.

    ``x is None``, ``x == None``, plain ``x``, ``"key" in x``, and these joined by ``not``,
    ``and`` and ``or`` are understood; any other test tells nothing.
    """
    match test:
        case ir.Unary(operator="not", operand=operand):
            return narrowed(names, operand, truth=not truth)
        case ir.Boolean(operator=operator, operands=operands) if (operator == "and") == truth:
            current: Mapping[str, Shape] | None = names
            for operand in operands:
                current = None if current is None else narrowed(current, operand, truth=truth)
            return current
        case ir.Name(name=name) if truth:
            return _replaced(names, name, names.get(name, ANYTHING).without("null"))
        case ir.Compare(operators=(operator,), operands=(left, right)):
            return _compared(names, operator, left, right, truth=truth)
    return names


def _compared(
    names: Mapping[str, Shape],
    operator: str,
    left: ir.Expression,
    right: ir.Expression,
    *,
    truth: bool,
) -> Mapping[str, Shape] | None:
    match left, right:
        case ir.Name(name=name), ir.Constant(value=None) if operator in {
            "is",
            "==",
            "is not",
            "!=",
        }:
            known = names.get(name, ANYTHING)
            is_null = (operator in {"is", "=="}) == truth
            if not is_null:
                return _replaced(names, name, known.without("null"))
            return _replaced(names, name, of_constant(None)) if "null" in known.kinds else None
        case ir.Constant(value=str(key)), ir.Name(name=name) if operator in {"in", "not in"}:
            has_key = (operator == "in") == truth
            return None if has_key and names.get(name, ANYTHING).lacks(key) else names
    return names


def _replaced(names: Mapping[str, Shape], name: str, shape: Shape) -> Mapping[str, Shape] | None:
    """The variables with one known better; None when nothing is left of it."""
    return None if shape.is_never else {**names, name: shape}
