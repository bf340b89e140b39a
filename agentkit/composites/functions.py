"""The functions and methods that the language knows, on values that are at hand.

What a function is called with may be an iterator of our own making (``range``, ``zip``,
``enumerate``, a view, a generator) where ``language.CONSUMERS`` says so. Functions that take their
items one by one (``sum``, ``max``, ``any``, ...) are ``Fold``s, so that the interpreter decides who
fetches the next item: a loop here, or an event loop that waits for a child between two items. A
fold fails on the very item on which Python's own function fails, because what comes after may call
children.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import GeneratorType
from typing import Any, Protocol

from agentkit.composites.guards import (
    COMPARE,
    CONTAINERS,
    NUMBERS,
    VALUES,
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

_FEW = 64
"""So many characters to strip are looked for one by one."""


def iterable(value: Any) -> Iterable[Any]:
    """What may be iterated over; Python's own complaint about anything else."""
    if type(value) in CONTAINERS or type(value) is str or type(value) in _LAZY:
        items: Iterable[Any] = value
        return items
    check_values(value)
    made: Iterable[Any] = iter(value)
    return made


# --- folds ----------------------------------------------------------------------------------------


class Fold(Protocol):
    """Takes items one by one and has a result at the end."""

    def push(self, item: Any) -> bool:
        """Take the next item; True when no further one is wanted."""

    def result(self) -> Any:
        """The value, once there are no more items."""


class _AnyOrAll:
    """``any`` and, with ``wanted`` False, ``all``: stop at the first item that decides."""

    __slots__ = ("_found", "_wanted")

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._found = not wanted

    def push(self, item: Any) -> bool:
        if bool(item) is self._wanted:
            self._found = self._wanted
            return True
        return False

    def result(self) -> bool:
        return self._found


class _Collected:
    """The items in a list that may not grow beyond the limit; then something made of them."""

    __slots__ = ("_finish", "_items", "_meter", "_most")

    def __init__(self, meter: Meter, finish: Callable[[list[Any]], Any]) -> None:
        self._meter = meter
        self._most = meter.limits.collection_items
        self._finish = finish
        self._items: list[Any] = []

    def push(self, item: Any) -> bool:
        self._items.append(item)
        if len(self._items) > self._most:
            raise self._meter.too_many_items()
        return False

    def result(self) -> Any:
        return self._finish(self._items)


class _Total:
    """``sum``: numbers are added by Python's own function, anything else step by step."""

    __slots__ = ("_meter", "_numbers", "_total")

    def __init__(self, meter: Meter, start: Any) -> None:
        self._meter = meter
        sum((), start)  # refuses a text to start with
        self._total = start
        self._numbers: list[Any] | None = [] if type(start) in NUMBERS else None

    def push(self, item: Any) -> bool:
        if self._numbers is not None:
            if type(item) in NUMBERS:
                self._numbers.append(item)
                return False
            self._total = sum(self._numbers, self._total)
            self._numbers = None
        self._total = add(self._meter, self._total, item)
        return False

    def result(self) -> Any:
        if self._numbers is None:
            return self._total
        return self._meter.number(sum(self._numbers, self._total))


class _Extreme:
    """``max``, or ``min`` with the operator ``<``: the first of the best."""

    __slots__ = ("_best", "_better", "_default", "_empty", "_meter")

    def __init__(self, name: str, meter: Meter, default: Any = _MISSING) -> None:
        self._meter = meter
        self._better = COMPARE[">" if name == "max" else "<"]
        self._empty: Callable[[Any], Any] = max if name == "max" else min
        self._best: Any = _MISSING
        self._default = default

    def push(self, item: Any) -> bool:
        if self._best is _MISSING or self._better(self._meter, item, self._best):
            self._best = item
        return False

    def result(self) -> Any:
        if self._best is not _MISSING:
            return self._best
        return self._empty(()) if self._default is _MISSING else self._default


def _sort(meter: Meter, items: list[Any], reverse: Any) -> list[Any]:
    """The same list, sorted; paid for by the comparisons that sorting takes."""
    weight, rounds = weigh(items, meter.fuel), len(items).bit_length()
    kinds = set(map(type, items))
    if kinds <= NUMBERS:  # compared quickly when they are of one type
        meter.spend(weight * rounds >> (5 if len(kinds) < 2 else 3))
    else:
        meter.spend(weight * (1 + (rounds >> 2)))
    items.sort(reverse=reverse)
    return items


def _joined(meter: Meter, separator: str, items: list[Any]) -> str:
    if all(type(item) is str for item in items):
        meter.make_text(sum(map(len, items)) + len(separator) * max(0, len(items) - 1))
    return separator.join(items)


FOLDS: Mapping[str, Callable[..., Fold]] = {
    "all": lambda _meter: _AnyOrAll(wanted=False),
    "any": lambda _meter: _AnyOrAll(wanted=True),
    "list": lambda meter: _Collected(meter, lambda items: items),
    "max": partial(_Extreme, "max"),
    "min": partial(_Extreme, "min"),
    "sorted": lambda meter, reverse=False: _Collected(
        meter, lambda items: _sort(meter, items, reverse)
    ),
    "sum": lambda meter, start=0: _Total(meter, start),
    "join": lambda meter, separator: _Collected(
        meter, lambda items: _joined(meter, separator, items)
    ),
}
"""By name: makes a fold of the meter and of the arguments besides the items."""


def _consume(meter: Meter, fold: Fold, items: Iterable[Any]) -> Any:
    """Feed a fold with items that are at hand, a unit of work for each."""
    if type(items) in CONTAINERS:
        meter.spend(len(items))  # type: ignore[arg-type]  # containers have a length
        for item in items:
            if fold.push(item):
                break
        return fold.result()
    for item in items:
        meter.spend(1)
        if fold.push(item):
            break
    return fold.result()


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


def _fold(name: str) -> Function:
    """A function that takes its items one by one."""

    def run(meter: Meter, items: Any, *beside: Any, **named: Any) -> Any:
        check_values(*beside, *named.values())
        return _consume(meter, FOLDS[name](meter, *beside, **named), iterable(items))

    return run


def _extreme(name: str) -> Function:
    fold, function = _fold(name), max if name == "max" else min

    def run(meter: Meter, *values: Any, **default: Any) -> Any:
        items = values[0] if len(values) == 1 else values
        if type(items) in (list, tuple) and items and set(map(type, items)) <= NUMBERS:
            meter.spend(len(items))
            return function(items)
        return fold(meter, items, **default)

    return run


FUNCTIONS: Mapping[str, Function] = {
    "abs": _of_values(abs),
    "all": _fold("all"),
    "any": _fold("any"),
    "bool": _of_values(bool),
    "enumerate": _enumerate,
    "float": _float,
    "int": _int,
    "is_close": _of_values(_is_close),
    "isfinite": _of_values(math.isfinite),
    "len": _len,
    "list": _fold("list"),
    "max": _extreme("max"),
    "min": _extreme("min"),
    "range": _of_values(range),
    "round": _round,
    "sorted": _fold("sorted"),
    "str": text_of,
    "sum": _fold("sum"),
    "zip": _zip,
}
"""Called with the meter and the arguments."""


# --- methods --------------------------------------------------------------------------------------


def _text(method: Function) -> Function:
    """A method that reads a text once and gives a text of about its length."""

    def run(meter: Meter, text: str, *arguments: Any) -> Any:
        meter.spend(len(text) >> 3)
        made = method(text, *arguments)
        if type(made) is str and len(made) > len(text):
            meter.make_text(len(made))
        return made

    return run


def _search(method: Function) -> Function:
    """A method that looks for a text in a text."""

    def run(meter: Meter, text: str, wanted: Any) -> Any:
        check_values(wanted)
        if type(wanted) is str:
            search(meter, text, wanted)
        return method(text, wanted)

    return run


def _affix(method: Function) -> Function:
    """A method that looks at one end of a text."""

    def run(meter: Meter, text: str, wanted: Any) -> Any:
        check_values(wanted)
        if type(wanted) is str:
            meter.spend(len(wanted) >> 5)
        elif type(wanted) in CONTAINERS:
            meter.look(wanted)
        return method(text, wanted)

    return run


def _strip(method: Function) -> Function:
    def run(meter: Meter, text: str, *characters: Any) -> Any:
        if characters and type(characters[0]) is str and len(characters[0]) > _FEW:
            meter.spend(len(characters[0]))
            characters = ("".join(set(characters[0])),)
            meter.spend((len(text) >> 3) * (len(characters[0]) >> 6))
        meter.spend(len(text) >> 3)
        return method(text, *characters)

    return run


def _split(method: Function) -> Function:
    def run(meter: Meter, text: str, *separator: Any) -> Any:
        meter.spend(len(text) >> 3)
        if separator and type(separator[0]) is str:
            search(meter, text, separator[0])
        parts = method(text, *separator)
        meter.copy_items(len(parts))
        meter.spend(len(parts))  # each a text of its own
        return parts

    return run


def _replace(meter: Meter, text: str, old: Any, new: Any) -> str:
    if type(old) is str and type(new) is str:
        for _ in range(3):  # counted here, counted again and replaced by Python
            search(meter, text, old)
        meter.make_text(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _join(meter: Meter, text: str, items: Any) -> Any:
    if type(items) not in VALUES or type(items) in CONTAINERS or type(items) is str:
        return _consume(meter, FOLDS["join"](meter, text), iterable(items))
    return text.join(items)  # Python's own complaint


def _among(method: Function) -> Function:
    """``count`` and ``index`` of a list or tuple."""

    def run(meter: Meter, items: Any, wanted: Any) -> Any:
        check_values(wanted)
        if type(wanted) in CONTAINERS:
            meter.look(wanted)  # Python prints it when it is not there
        look_for(meter, wanted, items)
        return method(items, wanted)

    return run


def _get(meter: Meter, table: dict[Any, Any], key: Any, *default: Any) -> Any:
    check_values(key)
    look_at_key(meter, key, table)
    return table.get(key, *default)


def _view(method: Function) -> Function:
    def run(_meter: Meter, table: dict[Any, Any]) -> Any:
        return method(table)

    return run


_METHODS: Mapping[type, Mapping[str, Function]] = {
    str: {
        "capitalize": _text(str.capitalize),
        "count": _search(str.count),
        "endswith": _affix(str.endswith),
        "find": _search(str.find),
        "index": _search(str.index),
        "isalpha": _text(str.isalpha),
        "isdigit": _text(str.isdigit),
        "join": _join,
        "lower": _text(str.lower),
        "lstrip": _strip(str.lstrip),
        "replace": _replace,
        "rstrip": _strip(str.rstrip),
        "split": _split(str.split),
        "splitlines": _split(str.splitlines),
        "startswith": _affix(str.startswith),
        "strip": _strip(str.strip),
        "title": _text(str.title),
        "upper": _text(str.upper),
    },
    list: {"count": _among(list.count), "index": _among(list.index)},
    tuple: {"count": _among(tuple.count), "index": _among(tuple.index)},
    dict: {
        "get": _get,
        "items": _view(dict.items),
        "keys": _view(dict.keys),
        "values": _view(dict.values),
    },
}
"""By type and name; called with the meter, the receiver and the arguments."""


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
