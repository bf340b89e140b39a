"""The functions that the language knows, on values that are at hand.

What they are called with may be an iterator of our own making (``range``, ``zip``, ``enumerate``,
a view, a generator) where ``language.CONSUMERS`` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import GeneratorType
from typing import Any

from agentkit.composites.interpreter.consumers import FOLDS, Extreme, consume, sorted_list
from agentkit.composites.interpreter.meter import Meter
from agentkit.composites.interpreter.operations import check_values
from agentkit.composites.interpreter.weights import CONTAINERS, NUMBERS, VALUES

Function = Callable[..., Any]

VIEWS = frozenset({type({}.keys()), type({}.values()), type({}.items())})
LAZY = frozenset({range, zip, enumerate, GeneratorType}) | VIEWS

_MOST_DIGITS = 4_300
"""Python's own limit on integers in texts, which a host may have lifted."""


def iterable(value: Any) -> Iterable[Any]:
    """What may be iterated over; Python's own complaint about anything else."""
    if type(value) in CONTAINERS or type(value) is str or type(value) in LAZY:
        items: Iterable[Any] = value
        return items
    check_values(value, None)
    made: Iterable[Any] = iter(value)
    return made


def text_of(meter: Meter, value: Any) -> str:
    """``str(value)``, which for a container prints all that it contains."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]  # just seen
    if kind is int:
        meter.check_bits(value.bit_length())
    elif kind in CONTAINERS:
        meter.look(value)
    else:
        check_values(value, None)
    text = str(value)
    meter.make_text(len(text))
    return text


def _abs(_meter: Meter, value: Any) -> Any:
    check_values(value, None)
    return abs(value)


def _bool(_meter: Meter, value: Any) -> bool:
    check_values(value, None)
    return bool(value)


def _float(meter: Meter, value: Any) -> float:
    check_values(value, None)
    if type(value) is str:
        meter.spend(len(value))
    return float(value)


def _int(meter: Meter, value: Any) -> int:
    check_values(value, None)
    if type(value) is str:
        if len(value) > _MOST_DIGITS:
            message = f"a text of {len(value)} characters; at most {_MOST_DIGITS} make an integer"
            raise ValueError(message)
        meter.spend(len(value) >> 2)
    number: int = meter.number(int(value))
    return number


def _isfinite(_meter: Meter, value: Any) -> bool:
    check_values(value, None)
    return math.isfinite(value)


def is_close(_meter: Meter, left: Any, right: Any, tolerance: Any = 1e-9) -> bool:
    """Equal up to a tolerance: relative for large numbers, absolute near zero."""
    check_values(left, right)
    check_values(tolerance, None)
    return math.isclose(left, right, rel_tol=tolerance, abs_tol=tolerance)


def _len(_meter: Meter, value: Any) -> int:
    if type(value) not in VALUES and type(value) not in LAZY:
        check_values(value, None)
    return len(value)


def _round(meter: Meter, value: Any, *digits: Any) -> Any:
    check_values(value, digits[0] if digits else None)
    if isinstance(value, int) and digits and isinstance(digits[0], int):
        meter.check_bits(value.bit_length())
        if -digits[0] > value.bit_length():  # a power of ten that is far beyond twice the value
            return 0
    return meter.number(round(value, *digits))


def _range(_meter: Meter, *bounds: Any) -> range:
    for bound in bounds:
        check_values(bound, None)
    return range(*bounds)


def _enumerate(_meter: Meter, items: Any, start: Any = 0) -> Iterable[Any]:
    check_values(start, None)
    return enumerate(iterable(items), start)


def _zip(_meter: Meter, *items: Any) -> Iterable[Any]:
    return zip(*map(iterable, items), strict=False)


def _sum(meter: Meter, items: Any, start: Any = 0) -> Any:
    check_values(start, None)
    return consume(meter, FOLDS["sum"](meter, start), iterable(items))


def _list(meter: Meter, items: Any) -> list[Any]:
    if type(items) in VALUES:
        items = iterable(items)
        meter.copy_items(len(items))
        if type(items) is str:  # each character becomes a text
            meter.spend(len(items))
        return list(items)
    made: list[Any] = consume(meter, FOLDS["list"](meter), iterable(items))
    return made


def _sorted(meter: Meter, items: Any, reverse: Any = 0) -> list[Any]:
    check_values(reverse, None)
    return sorted_list(meter, _list(meter, items), reverse)


def _extreme(name: str, meter: Meter, *values: Any, **default: Any) -> Any:
    for value in default.values():
        check_values(value, None)
    if len(values) > 1:
        if default:  # Python's own words for it
            return max(*values, **default) if name == "max" else min(*values, **default)
        return consume(meter, Extreme(meter, name), values)
    items = iterable(values[0])
    if type(items) in (list, tuple) and items and set(map(type, items)) <= NUMBERS:
        meter.spend(len(items))  # type: ignore[arg-type]  # just seen
        return max(items) if name == "max" else min(items)
    return consume(meter, Extreme(meter, name, **default), items)


def _decides(name: str, meter: Meter, items: Any) -> Any:
    return consume(meter, FOLDS[name](meter), iterable(items))


FUNCTIONS: Mapping[str, Function] = {
    "abs": _abs,
    "all": partial(_decides, "all"),
    "any": partial(_decides, "any"),
    "bool": _bool,
    "enumerate": _enumerate,
    "float": _float,
    "int": _int,
    "is_close": is_close,
    "isfinite": _isfinite,
    "len": _len,
    "list": _list,
    "max": partial(_extreme, "max"),
    "min": partial(_extreme, "min"),
    "range": _range,
    "round": _round,
    "sorted": _sorted,
    "str": text_of,
    "sum": _sum,
    "zip": _zip,
}
"""Called with the meter and the arguments."""
