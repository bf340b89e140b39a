"""What can be observed of a simulator, as JSON data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agentkit.messages import JsonObject

MAX_VALUES = 100_000
"""Values after which a state is cut off. It then equals no right one, and that is what it is for:
with a few dozen copies of directories into each other a model can make a tree of billions."""

MAX_DEPTH = 100
"""Levels of lists and objects after which a state is cut off in the same way."""

NOT_COMPARED: Mapping[str, frozenset[str]] = {"Directory": frozenset({"parent"})}
"""Attributes that upstream's ``__eq__`` of a class leaves out, beside private ones.

Two directories of ``GorillaFileSystem`` are equal when their names and contents are; ``parent``
leads back up.
"""

_CYCLE = "(a directory that holds this)"
_CUT = "(cut off: too much or too deep)"


def observed(instance: object) -> JsonObject:
    """The public attributes of a simulator; two are equal where upstream finds no difference.

    Upstream (``state_checker`` in ``multi_turn_checker.py``) compares attribute by attribute with
    ``==`` and passes over names that begin with ``_``. As JSON data: objects become their public
    attributes, sets sorted lists, tuples lists; a key that is no text stands in brackets
    (``[3]``), so that it never equals the text ``3``.

    Args:
        instance: An object with attributes.
    """
    return _Observer().attributes(instance)


def size_of(instance: object) -> int:
    """How many values its state has; beyond ``MAX_VALUES`` counting stops."""
    observer = _Observer()
    observer.attributes(instance)
    return MAX_VALUES - observer.left


class _Observer:
    def __init__(self) -> None:
        self.left = MAX_VALUES
        self._above: set[int] = set()  # ids of the objects and containers being looked into

    def attributes(self, instance: object) -> dict[str, Any]:
        left_out = NOT_COMPARED.get(type(instance).__name__, frozenset())
        return {
            name: self.value(value)
            for name, value in vars(instance).items()
            if not name.startswith("_") and name not in left_out
        }

    def value(self, value: Any) -> Any:
        self.left -= 1
        if isinstance(value, str | int) or value is None:  # the usual cases first
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if self.left < 0 or len(self._above) >= MAX_DEPTH:
            return _CUT
        if id(value) in self._above:
            return _CYCLE
        self._above.add(id(value))
        try:
            return self._inside(value)
        finally:
            self._above.discard(id(value))

    def _inside(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {_key(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, set | frozenset):
            return [self.value(item) for item in sorted(value, key=_rank)]
        return self.attributes(value) if hasattr(value, "__dict__") else str(value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return f"[{key}" if key.startswith("[") else key  # so that no text looks like a number
    if isinstance(key, bool) or (isinstance(key, float) and key.is_integer()):
        key = int(key)  # Python takes True, 1.0 and 1 for the same key
    return f"[{key}]"


def _rank(item: object) -> tuple[bool, float, str]:
    """Where a member of a set stands: numbers first, by value."""
    if isinstance(item, int | float):
        return False, item, ""
    return True, 0, _key(item)
