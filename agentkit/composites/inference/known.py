"""What the operators, functions and methods of the language give."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from agentkit.composites import ir
from agentkit.composites.inference.shape import (
    ANYTHING,
    NEVER,
    NUMERIC,
    Kind,
    Shape,
    array_of,
    array_with,
    join,
    of_constant,
    of_kind,
)

Shapes: TypeAlias = Sequence[Shape]

BOOLEAN = of_kind("boolean")
INTEGER = of_kind("integer")
NUMBER = of_kind("number")
STRING = of_kind("string")
REPEATED: frozenset[Kind] = frozenset({"string", "array"})
"""What ``*`` repeats."""


def element_of(shape: Shape) -> Shape:
    """What a loop over a value meets."""
    if shape.is_anything:
        return ANYTHING
    found = []
    if "array" in shape.kinds:
        found.append(shape.item)
    if shape.kinds & {"string", "object"}:  # characters, and keys
        found.append(STRING)
    return join(found)


def may_have_none(shape: Shape) -> bool:
    """Whether a loop over a value may have no turn; a declared list is taken to have items."""
    return shape.may_be_empty or shape.kinds != {"array"}


def unpacked(shape: Shape, count: int) -> tuple[Shape, ...]:
    """What each of several targets gets from a value."""
    if shape.elements is not None and shape.kinds == {"array"} and len(shape.elements) == count:
        return shape.elements
    return (element_of(shape),) * count


def arithmetic(operator: ir.BinaryOperator, left: Shape, right: Shape) -> Shape:
    """What an operator makes of two operands; anything when Python would refuse them."""
    kinds: set[Kind] = set()
    for one, two in itertools.product(left.kinds, right.kinds):
        kinds |= _result_kinds(operator, one, two)
    if not kinds:
        return NEVER if left.is_never or right.is_never else ANYTHING
    items = [side.item for side in (left, right) if "array" in side.kinds]
    joined = Shape(kinds=frozenset(kinds), may_be_empty=True)
    if "array" not in kinds:
        return joined
    return Shape(kinds=frozenset(kinds), items=join(items), may_be_empty=True)


def _result_kinds(operator: ir.BinaryOperator, left: Kind, right: Kind) -> set[Kind]:
    if left in NUMERIC and right in NUMERIC:
        if operator == "/":
            return {"number"}
        if "number" in {left, right}:
            return {"number"}
        return {"integer", "number"} if operator == "**" else {"integer"}
    if operator == "+" and left == right and left in REPEATED:
        return {left}
    if operator == "*":
        return {
            kind
            for kind, other in ((left, right), (right, left))
            if kind in REPEATED and other in {"boolean", "integer"}
        }
    return set()


def signed(operator: ir.UnaryOperator, operand: Shape) -> Shape:
    """What ``not``, ``-`` and ``+`` make of an operand."""
    if operator == "not":
        return BOOLEAN
    if operand.constant is not None and type(operand.constant[0]) in {int, float}:
        value = operand.constant[0]
        return of_constant(-value if operator == "-" else value)
    return _same_number([operand])


def _same_number(arguments: Shapes) -> Shape:
    kinds: set[Kind] = set(arguments[0].kinds & NUMERIC)
    if "boolean" in kinds:
        kinds = (kinds - {"boolean"}) | {"integer"}
    return Shape(kinds=frozenset(kinds)) if kinds else ANYTHING


def builtin_shape(name: str, arguments: Shapes, keywords: Mapping[str, Shape]) -> Shape:
    """What a builtin gives."""
    fixed = _FIXED.get(name)
    if fixed is not None:
        return fixed
    if name in {"max", "min"}:
        return _extreme(arguments, tuple(keywords.values()))
    return _BUILTINS[name](arguments)


def _elements(arguments: Shapes) -> Shape:
    return array_of(element_of(arguments[0]), may_be_empty=may_have_none(arguments[0]))


def _extreme(arguments: Shapes, default: Shapes) -> Shape:
    if len(arguments) == 1:
        return join([element_of(arguments[0]), *default])
    return join(arguments)


def _rounded(arguments: Shapes) -> Shape:
    return INTEGER if len(arguments) == 1 else _same_number(arguments)


def _total(arguments: Shapes) -> Shape:
    if len(arguments) > 1:
        return ANYTHING
    item = element_of(arguments[0])
    return join([INTEGER, _same_number([item])]) if not item.is_never else INTEGER


def _pairs_with_place(arguments: Shapes) -> Shape:
    return array_of(array_with([INTEGER, element_of(arguments[0])]), may_be_empty=True)


def _zipped(arguments: Shapes) -> Shape:
    return array_of(array_with(map(element_of, arguments)), may_be_empty=True)


_FIXED: Mapping[str, Shape] = {
    "all": BOOLEAN,
    "any": BOOLEAN,
    "bool": BOOLEAN,
    "float": NUMBER,
    "int": INTEGER,
    "is_close": BOOLEAN,
    "isfinite": BOOLEAN,
    "len": INTEGER,
    "range": array_of(INTEGER, may_be_empty=True),
    "str": STRING,
}
_BUILTINS: Mapping[str, Callable[[Shapes], Shape]] = {
    "abs": _same_number,
    "enumerate": _pairs_with_place,
    "list": _elements,
    "round": _rounded,
    "sorted": _elements,
    "sum": _total,
    "zip": _zipped,
}
_METHODS: Mapping[str, Shape] = {
    "capitalize": STRING,
    "count": INTEGER,
    "endswith": BOOLEAN,
    "find": INTEGER,
    "index": INTEGER,
    "isalpha": BOOLEAN,
    "isdigit": BOOLEAN,
    "join": STRING,
    "keys": array_of(STRING, may_be_empty=True),
    "lower": STRING,
    "lstrip": STRING,
    "replace": STRING,
    "rstrip": STRING,
    "split": array_of(STRING, may_be_empty=True),
    "splitlines": array_of(STRING, may_be_empty=True),
    "startswith": BOOLEAN,
    "strip": STRING,
    "title": STRING,
    "upper": STRING,
}


def method_shape(receiver: Shape, name: str, arguments: Shapes) -> Shape:
    """What a method gives."""
    fixed = _METHODS.get(name)
    if fixed is not None:
        return fixed
    if "object" not in receiver.kinds:
        return ANYTHING
    if name == "get":
        default = arguments[1] if len(arguments) > 1 else of_constant(None)
        return join([looked_up(receiver, arguments[0]), default])
    values = _values(receiver)
    return array_of(values if name == "values" else array_with([STRING, values]), may_be_empty=True)


def _values(receiver: Shape) -> Shape:
    if receiver.others is None:
        return ANYTHING
    return join([*receiver.properties.values(), receiver.others])


def looked_up(value: Shape, index: Shape) -> Shape:
    """What ``value[index]`` gives; anything when Python would refuse it."""
    if value.is_anything:
        return ANYTHING
    found = []
    if "string" in value.kinds:
        found.append(STRING)
    if "array" in value.kinds:
        found.append(_item_at(value, index))
    if "object" in value.kinds:
        key = index.constant[0] if index.constant is not None else None
        found.append(value.key(key) if isinstance(key, str) else _values(value))
    return join(found) if found else ANYTHING


def _item_at(value: Shape, index: Shape) -> Shape:
    place = index.constant[0] if index.constant is not None else None
    elements = value.elements
    if elements is not None and isinstance(place, int) and -len(elements) <= place < len(elements):
        return elements[place]
    return value.item
