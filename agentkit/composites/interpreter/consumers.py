"""Functions that take their items one by one: ``sum``, ``max``, ``any``, ``list`` and the like.

Each is a ``Fold``, so that the interpreter decides who fetches the next item: a loop here, or an
event loop that waits for a child between two items. A fold fails on the very item on which
Python's own function fails, because what comes after may call children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from agentkit.composites.interpreter.meter import Meter
from agentkit.composites.interpreter.operations import COMPARE, add
from agentkit.composites.interpreter.weights import CONTAINERS, NUMBERS, weigh

_MISSING = object()


class Fold(Protocol):
    """Takes items one by one and has a result at the end."""

    def push(self, item: Any) -> bool:
        """Take the next item; True when no further one is wanted."""

    def result(self) -> Any:
        """The value, once there are no more items."""


class AnyOrAll:
    """``any`` and, with ``wanted`` False, ``all``: stop at the first item that decides."""

    __slots__ = ("_found", "_wanted")

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._found = not wanted

    def push(self, item: Any) -> bool:
        """Stop when the item decides."""
        if bool(item) is self._wanted:
            self._found = self._wanted
            return True
        return False

    def result(self) -> bool:
        """Whether one was true, or whether all were."""
        return self._found


class Collected:
    """The items in a list that may not grow beyond the limit; then something made of them."""

    __slots__ = ("_finish", "_items", "_meter", "_most")

    def __init__(self, meter: Meter, finish: Callable[[list[Any]], Any]) -> None:
        self._meter = meter
        self._most = meter.limits.collection_items
        self._finish = finish
        self._items: list[Any] = []

    def push(self, item: Any) -> bool:
        """Keep the item."""
        self._items.append(item)
        if len(self._items) > self._most:
            raise self._meter.too_many_items()
        return False

    def result(self) -> Any:
        """What is made of the items."""
        return self._finish(self._items)


class Total:
    """``sum``: numbers are added by Python's own function, anything else step by step."""

    __slots__ = ("_meter", "_numbers", "_total")

    def __init__(self, meter: Meter, start: Any) -> None:
        self._meter = meter
        sum((), start)  # refuses a text to start with
        self._total = start
        self._numbers: list[Any] | None = [] if type(start) in NUMBERS else None

    def push(self, item: Any) -> bool:
        """Add the item."""
        if self._numbers is not None:
            if type(item) in NUMBERS:
                self._numbers.append(item)
                return False
            self._total = sum(self._numbers, self._total)
            self._numbers = None
        self._total = add(self._meter, self._total, item)
        return False

    def result(self) -> Any:
        """The sum."""
        if self._numbers is None:
            return self._total
        return self._meter.number(sum(self._numbers, self._total))


class Extreme:
    """``max``, or ``min`` with the operator ``<``: the first of the best."""

    __slots__ = ("_best", "_better", "_default", "_empty", "_meter")

    def __init__(self, meter: Meter, name: str, default: Any = _MISSING) -> None:
        self._meter = meter
        self._better = COMPARE[">" if name == "max" else "<"]
        self._empty: Callable[[Any], Any] = max if name == "max" else min
        self._best: Any = _MISSING
        self._default = default

    def push(self, item: Any) -> bool:
        """Keep the item when it is better than the best so far."""
        if self._best is _MISSING or self._better(self._meter, item, self._best):
            self._best = item
        return False

    def result(self) -> Any:
        """The best item, or the default."""
        if self._best is not _MISSING:
            return self._best
        return self._empty(()) if self._default is _MISSING else self._default


def sorted_list(meter: Meter, items: list[Any], reverse: Any) -> list[Any]:
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
        characters = sum(map(len, items)) + len(separator) * max(0, len(items) - 1)
        meter.make_text(characters)
    return separator.join(items)


FOLDS: Mapping[str, Callable[..., Fold]] = {
    "all": lambda _meter: AnyOrAll(wanted=False),
    "any": lambda _meter: AnyOrAll(wanted=True),
    "list": lambda meter: Collected(meter, lambda items: items),
    "max": lambda meter, default=_MISSING: Extreme(meter, "max", default),
    "min": lambda meter, default=_MISSING: Extreme(meter, "min", default),
    "sorted": lambda meter, reverse=False: Collected(
        meter, lambda items: sorted_list(meter, items, reverse)
    ),
    "sum": lambda meter, start=0: Total(meter, start),
    "join": lambda meter, separator: Collected(
        meter, lambda items: _joined(meter, separator, items)
    ),
}
"""By name: makes a fold of the meter and of the arguments besides the items."""


def consume(meter: Meter, fold: Fold, items: Iterable[Any]) -> Any:
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
