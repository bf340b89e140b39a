"""Whether two pieces of JSON data are the same, however deep they are."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

DEEPEST = 64
"""Levels of nesting that a definition may have."""

_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 3, 60, 60


def same(left: Any, right: Any) -> bool:
    """As ``agentkit.tools.fit.same_json``, without recursion and for any mapping or sequence.

    What is compared was made by a proposer, who may nest it as deep as a parser lets through.

    Example:
        >>> same({"a": [1, 2]}, {"a": (1.0, 2)}), same([1], [True])
        (True, False)
    """
    waiting = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if one is other:
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            waiting.extend((one[key], other[key]) for key in one)
        elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if len(one) != len(other):
                return False
            waiting.extend(zip(one, other, strict=True))
        elif isinstance(one, bool) or isinstance(other, bool) or not bool(one == other):
            return False
    return True


def is_too_deep(value: Any) -> bool:
    """Whether data are nested deeper than a definition may be.

    Example:
        >>> is_too_deep({"a": [1]})
        False
    """
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        parts = (
            part.values() if isinstance(part, Mapping) else part
            for part in level
            if isinstance(part, Mapping | list | tuple)
        )
        level = [inner for part in parts for inner in part]
        depth += 1
    return bool(level)


def shown_value(value: Any) -> str:
    """A value as it is written in Python, short, whatever it is.

    Example:
        >>> shown_value({"minimum": 1, "enum": [1, 2, 3]})
        "{'enum': [1, 2, 3], 'minimum': 1}"
    """
    return _REPR.repr(value)
