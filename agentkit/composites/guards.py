"""Enforce a run's limits: the meter, the weight of values, and guarded operators.

An operation charges for what it builds or looks through and raises what Python raises, or a
``GuardError``. ``fail`` turns either into an error that says where.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from math import inf
from time import monotonic
from types import NoneType
from typing import Any, NoReturn, TypeAlias

from agentkit.composites.problems import CompositeLimits, RunCode
from agentkit.errors import CompositeRunError, ToolSignal
from agentkit.tools.invocation import described, shortened

ATOMS = frozenset({NoneType, bool, float})
NUMBERS = frozenset({bool, int, float})
SCALARS = frozenset({NoneType, bool, int, float, str})
CONTAINERS = frozenset({list, tuple, dict})
VALUES = SCALARS | CONTAINERS
"""The types of values, exactly: an instance of a subclass may behave in its own way."""

_SEQUENCES = frozenset({str, list, tuple})


class GuardError(Exception):
    """An operation that Python would carry out and the interpreter does not.

    Attributes:
        code: Why.
        message: The same in words.
    """

    def __init__(self, code: RunCode, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


# --- frames and errors ----------------------------------------------------------------------------

Frame: TypeAlias = list[Any]
"""Meter, activation, result, then the variables."""

METER, ACTIVATION, RESULT, FIRST_SLOT = range(4)

Evaluate: TypeAlias = Callable[[Frame], Any]
"""An expression, lowered."""

FAILURES = (
    GuardError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors that an operation on values may raise."""

_CODES: tuple[tuple[type[BaseException], RunCode], ...] = (
    (ZeroDivisionError, "zero_division"),
    (OverflowError, "overflow"),
    (IndexError, "index_error"),
    (KeyError, "key_error"),
    (RecursionError, "nesting"),
    (MemoryError, "fuel"),
    (ValueError, "value_error"),
    (TypeError, "type_error"),
    (AttributeError, "type_error"),  # a method that the type does not have
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Activation:
    """The context of one run of one composite.

    Attributes:
        path: Names of the composites from the outermost one to this one.
        checking: Whether the arguments and conditions of all children are checked.
        checks_itself: Whether its own conditions are checked here; else the caller has done so.
    """

    path: tuple[str, ...] = ()
    checking: bool = False
    checks_itself: bool = False


OUTERMOST = Activation()
"""The activation of an expression outside any composite."""


def fail(frame: Frame, node: ast.expr | None, error: BaseException) -> NoReturn:
    """Raise the error of the run for what an operation raised."""
    fail_on(frame[ACTIVATION].path, node, error)


def fail_on(path: Sequence[str], node: ast.expr | None, error: BaseException) -> NoReturn:
    """The same for any place; a ``GuardError`` has nothing to add as a cause."""
    if isinstance(error, GuardError):
        raise run_error(path, node, error.code, error.message) from None
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    raise run_error(path, node, code, described(error)) from error


def run_error(
    path: Sequence[str], node: ast.expr | None, code: RunCode, what: str
) -> CompositeRunError:
    """An error with its place in words: path, what happened, and the part of the program."""
    expression = "" if node is None else ast.unparse(node)
    where = f", at `{shortened(expression)}`" if expression else ""
    who = f"{' → '.join(path)}: " if path else ""
    message = f"{who}{shortened(what)}{where}"
    return CompositeRunError(message, code=code, path=path, expression=expression)


def repeated_signal(path: Sequence[str], signal: ToolSignal) -> ToolSignal:
    """``ModelRetry`` or ``ToolFailed`` again, saying which of the inner tools speaks."""
    kind = next(kind for kind in type(signal).__mro__ if kind.__module__ == ToolSignal.__module__)
    again: ToolSignal = kind(f"{' → '.join(path)}: {signal.message}")
    return again


# --- the meter ------------------------------------------------------------------------------------

_WORD_BITS = 62
_WORD = (1 << _WORD_BITS) - 1
"""Integers up to here take a machine word or two; nothing about them needs counting."""


_OVER: Mapping[RunCode, str] = {
    "child_calls": "more than {child_calls} calls of children; at most {child_calls} are made",
    "collection_items": (
        "more than {collection_items} items; at most {collection_items} are collected"
    ),
    "deadline": "the run has lasted {deadline_seconds:g} seconds",
    "fuel": "the run has used its {fuel} units of work",
    "integer_bits": "an integer of {count} bits; at most {integer_bits} are computed",
    "string_chars": "a text of {count} characters; at most {string_chars} are built",
}
"""What a passed limit is called."""


class Meter:
    """The remaining budget of one run, shared with all composites it calls.

    Every node that is evaluated costs a unit of fuel, which pays for a number or for an item of a
    container. A text costs a unit for eight characters. Items that are copied from one container to
    another, as by ``+`` or a slice, cost an eighth each. A value that is searched, as by
    ``==`` or ``str``, costs its weight, contents included; one that crosses the border to a child
    or to the caller costs an eighth of it.

    Attributes:
        limits: What the run was given.
        fuel: Units of work left.
        calls: Calls of children left.
        ends_at: When the run has to end, by the monotonic clock; infinity for never.
        low: Smallest integer that needs no further check.
        high: Largest integer that needs no further check.
        permits: Lets so many children run at the same time; None where nothing is waited for.
        interrupted: Paths and calls that were waiting when the run was stopped.
    """

    __slots__ = ("calls", "ends_at", "fuel", "high", "interrupted", "limits", "low", "permits")

    def __init__(
        self, limits: CompositeLimits, permits: AbstractAsyncContextManager[None] | None = None
    ) -> None:
        self.limits = limits
        self.fuel = limits.fuel
        self.calls = limits.child_calls
        seconds = limits.deadline_seconds
        self.ends_at = inf if seconds is None else monotonic() + seconds
        bits = limits.integer_bits
        self.high = _WORD if bits >= _WORD_BITS else (1 << bits) - 1
        self.low = -self.high
        self.permits = permits
        self.interrupted: list[tuple[tuple[str, ...], ast.Call]] = []

    def spend(self, units: int) -> None:
        """Take fuel.

        Raises:
            GuardError: There is not enough left.
        """
        self.fuel -= units
        if self.fuel < 0:
            raise self.over("fuel")

    def over(self, code: RunCode, count: int = 0) -> GuardError:
        """The error for a limit that is passed; ``count`` is what would have been built."""
        return GuardError(code, _OVER[code].format(count=count, **asdict(self.limits)))

    def look(self, value: Any) -> None:
        """Pay for looking through a value once."""
        self.spend(weigh(value, self.fuel))

    def cross(self, value: Any) -> None:
        """Pay for a value that is handed over as it is."""
        self.spend(weigh(value, 8 * self.fuel + 7) >> 3)

    def make_text(self, characters: int) -> None:
        """Pay for a text before it is built."""
        if characters > self.limits.string_chars:
            raise self.over("string_chars", characters)
        self.spend(characters >> 3)

    def copy_items(self, count: int) -> None:
        """Pay for a container of items that exist, before it is built."""
        if count > self.limits.collection_items:
            raise self.over("collection_items")
        self.spend(count >> 3)

    def make(self, kind: type, size: int) -> None:
        """Pay for a text, list or tuple before it is built."""
        if kind is str:
            self.make_text(size)
        else:
            self.copy_items(size)

    def number(self, value: Any) -> Any:
        """A computed number, when it may be one."""
        if type(value) is int:
            self.check_bits(value.bit_length())
        elif type(value) is complex:
            raise GuardError("complex_number", "the result is a complex number")
        return value

    def check_bits(self, bits: int) -> None:
        """Refuse integers beyond the limit."""
        if bits > self.limits.integer_bits:
            raise self.over("integer_bits", bits)


# --- weights --------------------------------------------------------------------------------------

_DEEPEST_VALUE = 100
"""Levels of containers in containers that are looked through; Python's own limit is near 1,000
and depends on the caller."""

_CONTAINER = 3
"""Base weight of a container: opening one takes as long as many items do."""

_WORTH_A_LOOK = 16
"""At this length and above, checking the set of types first is faster than item by item."""


def weigh(value: Any, budget: int) -> int:
    """About the number of eight-byte words of a value, contents counted as often as reachable.

    Sharing makes small values large: thirty times ``a = [a, a]`` is thirty small lists, and a text
    of a billion brackets. Building such a value is cheap and allowed. Everything that looks through
    it, prints it or hands it on asks for its weight first, and the weighing stops at the budget.

    Raises:
        GuardError: It is more than ``budget``, nested too deeply, or holds what is no JSON data.
    """
    if type(value) not in CONTAINERS:
        words, _ = _weigh_level((value,))
        return 1 + words
    total = 1
    containers: Sequence[Any] = (value,)
    for _ in range(_DEEPEST_VALUE):
        items: list[Any] = []
        for container in containers:
            total += _CONTAINER + len(container)
            if total > budget:
                break
            items.extend(container)
            if type(container) is dict:
                items.extend(container.values())
                total += len(container)
        words, containers = _weigh_level(items)
        total += words
        if total > budget:
            raise GuardError("fuel", "the value is too large for the work that is left")
        if not containers:
            return total
    raise GuardError("nesting", f"the value is nested more than {_DEEPEST_VALUE} levels deep")


def _weigh_level(items: Sequence[Any]) -> tuple[int, Sequence[Any]]:
    """The words of texts and numbers beyond the first of each, and the containers."""
    if len(items) > _WORTH_A_LOOK:
        kinds = set(map(type, items))
        if kinds <= ATOMS:
            return 0, []
        if kinds == {int}:
            return sum(map(int.bit_length, items)) >> 6, []
        if kinds <= CONTAINERS:
            return 0, items
    words = 0
    containers: list[Any] = []
    for item in items:
        kind = type(item)
        if kind is str:
            words += len(item) >> 3
        elif kind is int:
            words += item.bit_length() >> 6
        elif kind in CONTAINERS:
            containers.append(item)
        elif kind not in ATOMS:
            raise GuardError("opaque_value", f"a {kind.__name__} is no JSON data")
    return words, containers


# --- operators ------------------------------------------------------------------------------------

Operation = Callable[[Meter, Any, Any], Any]

_SPREAD = frozenset({str, float, bool})
"""Types of keys of which few have the same hash: Python salts the hashes of texts."""

_HASHED = 2**61 - 1
"""Integers up to here are their own hashes."""

_SHORT_TEXT, _MEDIUM_TEXT, _SHORT_WANTED, _LAST_PLACES = 2_500, 30_000, 100, 2_000
"""Lengths at which CPython switches its search algorithm."""


def check_values(*values: Any) -> None:
    """Refuse what is no JSON data: its operators are code that nobody has counted."""
    for value in values:
        if type(value) not in VALUES:
            raise GuardError("opaque_value", f"a {type(value).__name__} is no JSON data")


def add(meter: Meter, left: Any, right: Any) -> Any:
    """``left + right``."""
    kind = type(left)
    if kind in _SEQUENCES and type(right) is kind:
        meter.make(kind, len(left) + len(right))
        return left + right
    check_values(left, right)
    return meter.number(left + right)


def _multiply(meter: Meter, left: Any, right: Any) -> Any:
    if type(left) in _SEQUENCES and isinstance(right, int):
        meter.make(type(left), len(left) * max(right, 0))
        return left * right
    if type(right) in _SEQUENCES and isinstance(left, int):
        meter.make(type(right), len(right) * max(left, 0))
        return left * right
    check_values(left, right)
    return _arithmetic(meter, operator.mul, left, right)


def _power(meter: Meter, left: Any, right: Any) -> Any:
    check_values(left, right)
    if isinstance(left, int) and isinstance(right, int) and right > 0 and abs(left) > 1:
        least_bits = (left.bit_length() - 1) * right + 1
        meter.check_bits(least_bits)
        meter.spend(least_bits >> 6)
    return _arithmetic(meter, operator.pow, left, right)


def _modulo(meter: Meter, left: Any, right: Any) -> Any:
    if type(left) is str:
        raise GuardError("string_format", "text % value is not part of the language")
    check_values(left, right)
    return _arithmetic(meter, operator.mod, left, right)


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
    "*": _multiply,
    "/": _checked(operator.truediv),
    "//": _checked(operator.floordiv),
    "%": _modulo,
    "**": _power,
}


def _signed(operate: Callable[[Any], Any]) -> Callable[[Meter, Any], Any]:
    def run(meter: Meter, value: Any) -> Any:
        check_values(value)
        return meter.number(operate(value))

    return run


SIGNS: Mapping[str, Callable[[Meter, Any], Any]] = {
    "-": _signed(operator.neg),
    "+": _signed(operator.pos),
}


def _comparing(compare: Callable[[Any, Any], bool]) -> Operation:
    """A comparison that pays for looking through both values side by side."""

    def run(meter: Meter, left: Any, right: Any) -> bool:
        kind = type(left)
        if kind not in NUMBERS or type(right) not in NUMBERS:
            check_values(left, right)
            if type(right) is kind and kind is str:
                meter.spend(min(len(left), len(right)) >> 6)
            elif type(right) is kind and kind in CONTAINERS:
                meter.look(left)
        return compare(left, right)

    return run


def _contains(meter: Meter, item: Any, container: Any) -> bool:
    check_values(item, container)
    kind = type(container)
    if kind is str and type(item) is str:
        search(meter, container, item)
    elif kind is dict:
        look_at_key(meter, item, container)
    elif kind in CONTAINERS:
        look_for(meter, item, container)
    found: bool = item in container
    return found


COMPARE: Mapping[str, Operation] = {
    "==": _comparing(operator.eq),
    "!=": _comparing(operator.ne),
    "<": _comparing(operator.lt),
    "<=": _comparing(operator.le),
    ">": _comparing(operator.gt),
    ">=": _comparing(operator.ge),
    "in": _contains,
    "not in": lambda meter, item, container: not _contains(meter, item, container),
    "is": lambda _meter, left, right: left is right,
    "is not": lambda _meter, left, right: left is not right,
}


def search(meter: Meter, text: str, part: str) -> None:
    """Pay for looking for a text in a text.

    CPython (Objects/stringlib/fastsearch.h) takes linear time where the text is much longer than
    what it looks for, and else may compare all letters at each place, or at each of the last.
    """
    size, letters = len(text), len(part)
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


def item_of(meter: Meter, value: Any, index: Any) -> Any:
    """``value[index]``."""
    check_values(value, index)
    if type(value) is dict:
        look_at_key(meter, index, value)
    return value[index]


def slice_of(meter: Meter, value: Any, start: Any, stop: Any, step: Any) -> Any:
    """``value[start:stop:step]``."""
    check_values(value, start, stop, step)
    part = value[slice(start, stop, step)]
    meter.make(type(part), len(part))
    return part
