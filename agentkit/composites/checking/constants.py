"""What can be worked out about an expression before it runs.

Only small values are worked out: a power or a repetition that would be large counts as unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentkit.composites import ir
from agentkit.composites.language import ORDERINGS

UNKNOWN: Final = object()
"""The value of an expression that depends on arguments, or that is not worked out."""

_BITS = 256
_CHARS = 1_000
_PASSING = frozenset({"enumerate", "list", "sorted", "zip"})
"""Functions that give no items when they are given none."""

_FOLDED = (ArithmeticError, TypeError, ValueError, LookupError)
"""What Python may raise on constants; the program will raise the same when it runs."""

_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    **ORDERINGS,
    "in": lambda item, items: item in items,
    "not in": lambda item, items: item not in items,
    "is": operator.is_,
    "is not": operator.is_not,
}
_UNARY: Mapping[str, Callable[[Any], Any]] = {
    "+": operator.pos,
    "-": operator.neg,
    "not": operator.not_,
}


def truth(node: ir.Expression) -> bool | None:
    """Whether an expression is true or false whatever the arguments; None when it depends.

    An ``or`` with an operand that is always true is always true, and so on for ``and``.
    """
    if isinstance(node, ir.Boolean):
        return _truth_of_boolean(node)
    if isinstance(node, ir.Unary) and node.operator == "not":
        inner = truth(node.operand)
        return None if inner is None else not inner
    if isinstance(node, ir.ListLiteral | ir.TupleLiteral):
        return bool(node.items)
    if isinstance(node, ir.DictLiteral):
        return bool(node.keys)
    if isinstance(node, ir.Format):  # any text in it makes it more than empty
        return True if any(isinstance(part, ir.Constant) for part in node.parts) else None
    value = fold(node)
    return None if value is UNKNOWN else bool(value)


def never_runs(source: ir.Expression) -> bool:
    """Whether a loop over ``source`` has no items, whatever the arguments.

    Such a loop is allowed, but the calls in it do not count in the flat size of a composite.
    """
    if isinstance(source, ir.ListLiteral | ir.TupleLiteral):
        return not source.items
    if isinstance(source, ir.DictLiteral):
        return not source.keys
    if not isinstance(source, ir.Builtin):
        return bool(fold(source) == "")
    if source.function == "range":
        bounds = [fold(argument) for argument in source.arguments]
        return (
            all(type(bound) is int for bound in bounds)
            and 0 not in bounds[2:]
            and not range(*bounds)
        )
    given = source.arguments if source.function == "zip" else source.arguments[:1]
    return source.function in _PASSING and any(map(never_runs, given))


def _truth_of_boolean(node: ir.Boolean) -> bool | None:
    decides = node.operator == "or"
    truths = [truth(operand) for operand in node.operands]
    if decides in truths:
        return decides
    return None if None in truths else not decides


def fold(node: ir.Expression) -> Any:
    """The value of an expression made of constants; ``UNKNOWN`` for any other."""
    folder = _FOLDERS.get(type(node))
    if folder is None:
        return UNKNOWN
    try:
        return folder(node)
    except _FOLDED:
        return UNKNOWN


def _constant(node: ir.Constant) -> Any:
    return node.value


def _unary(node: ir.Unary) -> Any:
    value = fold(node.operand)
    return UNKNOWN if value is UNKNOWN else _UNARY[node.operator](value)


def _binary(node: ir.Binary) -> Any:
    left = fold(node.left)
    right = UNKNOWN if left is UNKNOWN else fold(node.right)
    if right is UNKNOWN or not _is_small(node.operator, left, right):
        return UNKNOWN
    value = _BINARY[node.operator](left, right)
    return UNKNOWN if isinstance(value, complex) else value


def _is_small(operation: ir.BinaryOperator, left: Any, right: Any) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        sizes = [len(side) if isinstance(side, str) else abs(side or 0) for side in (left, right)]
        joined = sizes[0] * sizes[1] if operation == "*" else sum(sizes)
        return operation in {"+", "*"} and joined <= _CHARS
    if not isinstance(left, int) or not isinstance(right, int):
        return True  # floats stay floats
    if operation == "**":
        return abs(right) * left.bit_length() <= _BITS
    return left.bit_length() + right.bit_length() <= 2 * _BITS


def _compare(node: ir.Compare) -> Any:
    values = [fold(operand) for operand in node.operands]
    if any(value is UNKNOWN for value in values):
        return UNKNOWN
    for place, comparison in enumerate(node.operators):
        if not _COMPARE[comparison](values[place], values[place + 1]):
            return False
    return True


def _boolean(node: ir.Boolean) -> Any:
    decides = node.operator == "or"
    value: Any = UNKNOWN
    for operand in node.operands:
        value = fold(operand)
        if value is UNKNOWN or bool(value) is decides:
            return value
    return value


def _conditional(node: ir.Conditional) -> Any:
    test = truth(node.test)
    return UNKNOWN if test is None else fold(node.then if test else node.otherwise)


_FOLDERS: Mapping[type, Callable[[Any], Any]] = {
    ir.Constant: _constant,
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.Compare: _compare,
    ir.Boolean: _boolean,
    ir.Conditional: _conditional,
}
