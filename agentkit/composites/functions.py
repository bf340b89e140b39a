"""The functions and methods that the language knows, on values that are at hand.

What a function is called with may be an iterator of our own making (``range``, ``zip``,
``enumerate``, a view, a generator) where ``language.CONSUMERS`` says so. A function of items fails
on the very item on which Python's own does, because what comes after may call children.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import GeneratorType
from typing import Any

from agentkit.composites.guards import (
    COMPARE,
    CONTAINERS,
    NUMBERS,
    SCALARS,
    Meter,
    add,
    check_values,
    look_at_key,
    look_for,
    search,
    weigh,
)

Function = Callable[..., Any]

_VIEWS = frozenset({type({}.keys()), type({}.values()), type({}.items())})
_LAZY = frozenset({range, zip, enumerate, GeneratorType}) | _VIEWS
_MISSING = object()

_MOST_DIGITS = 4_300
"""Python's own limit on integers in texts, which a host may have lifted."""


def iterable(value: Any) -> Iterable[Any]:
    """Check that a value is iterable; otherwise raise Python's own error."""
    if type(value) in CONTAINERS or type(value) is str or type(value) in _LAZY:
        items: Iterable[Any] = value
        return items
    check_values(value)
    made: Iterable[Any] = iter(value)
    return made


# --- functions of items, taken one by one ---------------------------------------------------------


def _paid(meter: Meter, items: Any) -> Iterable[Any]:
    """Iterate over a value, charging a unit of work for each item."""
    each = iterable(items)
    if type(each) in CONTAINERS:
        meter.spend(len(each))  # type: ignore[arg-type]  # containers have a length
        return each
    return _paid_one_by_one(meter, each)


def _paid_one_by_one(meter: Meter, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        meter.spend(1)
        yield item


def _any_or_all(*, wanted: bool) -> Function:
    """``any`` and, with ``wanted`` False, ``all``: stop at the first item that decides."""

    def run(meter: Meter, items: Any) -> bool:
        for item in _paid(meter, items):
            if bool(item) is wanted:
                return wanted
        return not wanted

    return run


def _collected(meter: Meter, items: Any) -> list[Any]:
    """The items in a list that may not grow beyond the limit."""
    most = meter.limits.collection_items
    made = list(islice(_paid(meter, items), most + 1))
    if len(made) > most:
        raise meter.over("collection_items")
    return made


def _total(meter: Meter, items: Any, start: Any = 0) -> Any:
    """``sum``: numbers are added by Python's own function, anything else step by step."""
    check_values(start)
    total = sum((), start)  # refuses a text to start with
    numbers: list[Any] | None = [] if type(start) in NUMBERS else None
    for item in _paid(meter, items):
        if numbers is not None and type(item) in NUMBERS:
            numbers.append(item)
            continue
        total = total if numbers is None else sum(numbers, total)
        numbers = None
        total = add(meter, total, item)
    return total if numbers is None else meter.number(sum(numbers, total))


def _extreme(name: str) -> Function:
    """``max`` or ``min``: the first of the best."""
    function, better = (max, COMPARE[">"]) if name == "max" else (min, COMPARE["<"])

    def run(meter: Meter, *values: Any, **default: Any) -> Any:
        items = values[0] if len(values) == 1 else values
        if type(items) in (list, tuple) and items and set(map(type, items)) <= NUMBERS:
            meter.spend(len(items))
            return function(items)
        check_values(*default.values())
        best = _MISSING
        for item in _paid(meter, items):
            if best is _MISSING or better(meter, item, best):
                best = item
        return function((), **default) if best is _MISSING else best

    return run


def _sorted(meter: Meter, values: Any, reverse: Any = False) -> list[Any]:  # noqa: FBT002 - as in Python
    """The items sorted; paid for by the comparisons that sorting takes."""
    check_values(reverse)
    items = _collected(meter, values)
    weight, rounds = weigh(items, meter.fuel), len(items).bit_length()
    kinds = set(map(type, items))
    if kinds <= NUMBERS:  # compared quickly when they are of one type
        meter.spend(weight * rounds >> (5 if len(kinds) < 2 else 3))
    else:
        meter.spend(weight * (1 + (rounds >> 2)))
    items.sort(reverse=reverse)
    return items


# --- functions ------------------------------------------------------------------------------------


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
        check_values(value)
    text = str(value)
    meter.make_text(len(text))
    return text


def _of_values(function: Function) -> Function:
    """A function whose cost is nothing to speak of, on JSON data only."""

    def run(_meter: Meter, *values: Any, **named: Any) -> Any:
        check_values(*values, *named.values())
        return function(*values, **named)

    return run


def _is_close(left: Any, right: Any, tolerance: Any = 1e-9) -> bool:
    return math.isclose(left, right, rel_tol=tolerance, abs_tol=tolerance)


def _float(meter: Meter, value: Any) -> float:
    check_values(value)
    if type(value) is str:
        meter.spend(len(value))
    return float(value)


def _int(meter: Meter, value: Any) -> int:
    check_values(value)
    if type(value) is str:
        if len(value) > _MOST_DIGITS:
            message = f"a text of {len(value)} characters; at most {_MOST_DIGITS} make an integer"
            raise ValueError(message)
        meter.spend(len(value) >> 2)
    number: int = meter.number(int(value))
    return number


def _len(_meter: Meter, value: Any) -> int:
    if type(value) not in _LAZY:
        check_values(value)
    return len(value)


def _round(meter: Meter, value: Any, *digits: Any) -> Any:
    check_values(value, *digits)
    if isinstance(value, int) and digits and isinstance(digits[0], int):
        meter.check_bits(value.bit_length())
        if -digits[0] > value.bit_length():  # a power of ten that is far beyond twice the value
            return 0
    return meter.number(round(value, *digits))


def _enumerate(_meter: Meter, items: Any, start: Any = 0) -> Iterable[Any]:
    check_values(start)
    return enumerate(iterable(items), start)


def _zip(_meter: Meter, *items: Any) -> Iterable[Any]:
    return zip(*map(iterable, items), strict=False)


FUNCTIONS: Mapping[str, Function] = {
    "abs": _of_values(abs),
    "all": _any_or_all(wanted=False),
    "any": _any_or_all(wanted=True),
    "bool": _of_values(bool),
    "enumerate": _enumerate,
    "float": _float,
    "int": _int,
    "is_close": _of_values(_is_close),
    "isfinite": _of_values(math.isfinite),
    "len": _len,
    "list": _collected,
    "max": _extreme("max"),
    "min": _extreme("min"),
    "range": _of_values(range),
    "round": _round,
    "sorted": _sorted,
    "str": text_of,
    "sum": _total,
    "zip": _zip,
}
"""Called with the meter and the arguments."""


# --- methods --------------------------------------------------------------------------------------


def _text(method: Function) -> Function:
    """A method that reads a text, perhaps looking for others in it."""

    def run(meter: Meter, text: str, *arguments: Any) -> Any:
        check_values(*arguments)
        meter.spend(len(text) >> 3)
        for argument in arguments:
            if type(argument) is str:
                search(meter, text, argument)
            elif type(argument) in CONTAINERS:
                meter.look(argument)
        made = method(text, *arguments)
        if type(made) is str and len(made) > len(text):
            meter.make_text(len(made))
        elif type(made) is list:
            meter.copy_items(len(made))
            meter.spend(len(made))  # each a text of its own
        return made

    return run


def _strip(method: Function) -> Function:
    """A method that looks for each character of a text among others."""

    def run(meter: Meter, text: str, *characters: Any) -> Any:
        char = characters[0] if characters else None
        if type(char) is str:
            meter.spend(len(text) * len(char) >> 10)
        meter.spend(len(text) >> 3)
        return method(text, *characters)

    return run


def _replace(meter: Meter, text: str, old: Any, new: Any) -> str:
    if type(old) is str and type(new) is str:
        for _ in range(3):  # counted here, counted again and replaced by Python
            search(meter, text, old)
        meter.make_text(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _join(meter: Meter, text: str, items: Any) -> Any:
    if type(items) in SCALARS and type(items) is not str:
        return text.join(items)  # Python's own complaint
    parts = _collected(meter, items)
    if all(type(part) is str for part in parts):
        meter.make_text(sum(map(len, parts)) + len(text) * max(0, len(parts) - 1))
    return text.join(parts)


def _among(method: Function) -> Function:
    """``count`` and ``index`` of a list or tuple."""

    def run(meter: Meter, items: Any, item: Any) -> Any:
        check_values(item)
        if type(item) in CONTAINERS:
            meter.look(item)  # Python prints it when it is not there
        look_for(meter, item, items)
        return method(items, item)

    return run


def _get(meter: Meter, table: dict[Any, Any], key: Any, *default: Any) -> Any:
    check_values(key)
    look_at_key(meter, key, table)
    return table.get(key, *default)


def _plain(method: Function) -> Function:
    return lambda _meter, table: method(table)


_TEXT_METHODS = (
    *(str.capitalize, str.count, str.endswith, str.find, str.index, str.isalpha, str.isdigit),
    *(str.lower, str.split, str.splitlines, str.startswith, str.title, str.upper),
)
_METHODS: Mapping[type, Mapping[str, Function]] = {
    str: {
        **{method.__name__: _text(method) for method in _TEXT_METHODS},
        **{method.__name__: _strip(method) for method in (str.lstrip, str.rstrip, str.strip)},
        "join": _join,
        "replace": _replace,
    },
    list: {"count": _among(list.count), "index": _among(list.index)},
    tuple: {"count": _among(tuple.count), "index": _among(tuple.index)},
    dict: {
        "get": _get,
        **{method.__name__: _plain(method) for method in (dict.items, dict.keys, dict.values)},
    },
}
"""Methods by type and name; called with the meter, the receiver and the arguments."""


def method_of(value: Any, name: str) -> Function:
    """The method of a value.

    Raises:
        AttributeError: Its type has no such method, in Python or in the language.
    """
    method = _METHODS.get(type(value), {}).get(name)
    if method is None:
        check_values(value)
        message = f"{type(value).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message)
    return method
