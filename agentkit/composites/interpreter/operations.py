"""Python's operators on values, refused where their cost is out of proportion.

Each takes the meter and the operands, charges for what it builds or looks through, and raises what
Python raises, or a ``Guard``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from agentkit.composites.interpreter.guard import Guard
from agentkit.composites.interpreter.meter import Meter
from agentkit.composites.interpreter.weights import CONTAINERS, NUMBERS, VALUES

_SHORT_TEXT, _MEDIUM_TEXT, _SHORT_WANTED, _LAST_PLACES = 2_500, 30_000, 100, 2_000
"""The lengths by which CPython chooses how to search."""

Operation = Callable[[Meter, Any, Any], Any]

_SEQUENCES = frozenset({str, list, tuple})
_SPREAD = frozenset({str, float, bool})
"""Types of keys of which few have the same hash: Python salts the hashes of texts."""

_HASHED = 2**61 - 1
"""Integers up to here are their own hashes."""


def add(meter: Meter, left: Any, right: Any) -> Any:
    """``left + right``."""
    kind = type(left)
    if kind in _SEQUENCES and type(right) is kind:
        _make(meter, kind, len(left) + len(right))
        return left + right
    check_values(left, right)
    return meter.number(left + right)


def multiply(meter: Meter, left: Any, right: Any) -> Any:
    """``left * right``."""
    if type(left) in _SEQUENCES and isinstance(right, int):
        _make(meter, type(left), len(left) * max(right, 0))
        return left * right
    if type(right) in _SEQUENCES and isinstance(left, int):
        _make(meter, type(right), len(right) * max(left, 0))
        return left * right
    check_values(left, right)
    if isinstance(left, int) and isinstance(right, int):
        meter.check_bits(left.bit_length() + right.bit_length() - 1)
    return _arithmetic(meter, operator.mul, left, right)


def power(meter: Meter, left: Any, right: Any) -> Any:
    """``left ** right``."""
    check_values(left, right)
    if isinstance(left, int) and isinstance(right, int) and right > 0 and abs(left) > 1:
        least_bits = (left.bit_length() - 1) * right + 1
        meter.check_bits(least_bits)
        meter.spend(least_bits >> 6)
    return _arithmetic(meter, operator.pow, left, right)


def modulo(meter: Meter, left: Any, right: Any) -> Any:
    """``left % right``, of numbers only."""
    if type(left) is str:
        raise Guard("string_format", "text % value is not part of the language")
    return _checked(operator.mod)(meter, left, right)


def _arithmetic(meter: Meter, operate: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """An operation whose cost can grow faster than its operands."""
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() + right.bit_length()
        meter.check_bits(bits >> 1)
        meter.spend(bits >> 6)
    return meter.number(operate(left, right))


def _checked(operate: Callable[[Any, Any], Any]) -> Operation:
    def run(meter: Meter, left: Any, right: Any) -> Any:
        check_values(left, right)
        return _arithmetic(meter, operate, left, right)

    return run


BINARY: Mapping[str, Operation] = {
    "+": add,
    "-": _checked(operator.sub),
    "*": multiply,
    "/": _checked(operator.truediv),
    "//": _checked(operator.floordiv),
    "%": modulo,
    "**": power,
}


def negative(meter: Meter, value: Any) -> Any:
    """``-value``."""
    check_values(value, None)
    return meter.number(-value)


def positive(meter: Meter, value: Any) -> Any:
    """``+value``."""
    check_values(value, None)
    return meter.number(+value)


def look_at_both(meter: Meter, left: Any, right: Any) -> None:
    """Pay for comparing two values: they are looked through side by side."""
    kind = type(left)
    if kind not in VALUES or type(right) not in VALUES:
        check_values(left, right)
    if type(right) is not kind:
        return
    if kind is str:
        meter.spend(min(len(left), len(right)) >> 6)
    elif kind in CONTAINERS:
        meter.look(left)


def contains(meter: Meter, item: Any, container: Any) -> bool:
    """``item in container``."""
    check_values(item, container)
    kind = type(container)
    if kind is str:
        if type(item) is str:
            search(meter, container, item)
    elif kind is dict:
        look_at_key(meter, item, container)
    elif kind in CONTAINERS:
        look_for(meter, item, container)
    found: bool = item in container
    return found


def search(meter: Meter, text: str, wanted: str) -> None:
    """Pay for looking for a text in a text.

    CPython (Objects/stringlib/fastsearch.h) takes linear time where the text is much longer than
    what it looks for, and else may compare all letters at each place, or at each of the last.
    """
    size, letters = len(text), len(wanted)
    places = max(size - letters + 1, 0)
    if size >= _SHORT_TEXT and (letters >= _SHORT_WANTED or size >= _MEDIUM_TEXT):
        places = 0 if 3 * letters < size else min(places, _LAST_PLACES)
    meter.spend(((size + letters) >> 5) + (places * letters >> 10))


def look_for(meter: Meter, item: Any, container: Any) -> None:
    """Pay for comparing ``item`` with each item of a list or tuple."""
    if type(item) in CONTAINERS:
        meter.look(container)
    elif type(item) is str:
        meter.spend(len(container) * (1 + (len(item) >> 6)))
    else:
        meter.spend(len(container))


def look_at_key(meter: Meter, key: Any, table: Mapping[Any, Any]) -> None:
    """Pay for hashing a key, and for comparing it with others of the same hash."""
    if type(key) is tuple:
        meter.look(key)
    if type(key) not in _SPREAD and _may_collide(key):
        meter.spend(len(table) >> (3 if type(key) is tuple else 5))


def _may_collide(key: Any) -> bool:
    """Whether any number of keys with the hash of this one can be made.

    Python hashes an integer as its remainder by 2**61 - 1, and a tuple by the hashes of its items.
    """
    if type(key) is tuple:
        return any(map(_may_collide, key))
    return type(key) is int and not -_HASHED < key < _HASHED


def _comparing(compare: Callable[[Any, Any], bool]) -> Operation:
    def run(meter: Meter, left: Any, right: Any) -> bool:
        if type(left) not in NUMBERS or type(right) not in NUMBERS:
            look_at_both(meter, left, right)
        return compare(left, right)

    return run


def _not_contains(meter: Meter, item: Any, container: Any) -> bool:
    return not contains(meter, item, container)


def _is(_meter: Meter, left: Any, right: Any) -> bool:
    return left is right


def _is_not(_meter: Meter, left: Any, right: Any) -> bool:
    return left is not right


COMPARE: Mapping[str, Operation] = {
    "==": _comparing(operator.eq),
    "!=": _comparing(operator.ne),
    "<": _comparing(operator.lt),
    "<=": _comparing(operator.le),
    ">": _comparing(operator.gt),
    ">=": _comparing(operator.ge),
    "in": contains,
    "not in": _not_contains,
    "is": _is,
    "is not": _is_not,
}


def item_of(meter: Meter, value: Any, index: Any) -> Any:
    """``value[index]``."""
    check_values(value, index)
    if type(value) is dict:
        look_at_key(meter, index, value)
    return value[index]


def slice_of(meter: Meter, value: Any, start: Any, stop: Any, step: Any) -> Any:
    """``value[start:stop:step]``."""
    check_values(value, start)
    check_values(stop, step)
    part = value[slice(start, stop, step)]
    _make(meter, type(part), len(part))
    return part


def check_values(left: Any, right: Any) -> None:
    """Refuse what is no JSON data: its operators are code that nobody has counted."""
    for value in (left, right):
        if type(value) not in VALUES:
            raise Guard("opaque_value", f"a {type(value).__name__} is no JSON data")


def _make(meter: Meter, kind: type, size: int) -> None:
    if kind is str:
        meter.make_text(size)
    else:
        meter.copy_items(size)
