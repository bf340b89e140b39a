"""The words of the composite language: one table for the parser, the interpreter and the docs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Arity:
    """How a function may be called.

    Attributes:
        least: Fewest positional arguments.
        most: Most positional arguments; None for any number.
        keywords: Keywords that it knows.
    """

    least: int
    most: int | None
    keywords: tuple[str, ...] = ()


_ONE = Arity(least=1, most=1)

BUILTINS: Mapping[str, Arity] = {
    "abs": _ONE,
    "all": _ONE,
    "any": _ONE,
    "bool": _ONE,
    "enumerate": Arity(least=1, most=2, keywords=("start",)),
    "float": _ONE,
    "int": _ONE,
    "is_close": Arity(least=2, most=2, keywords=("tolerance",)),
    "isfinite": _ONE,
    "len": _ONE,
    "list": _ONE,
    "max": Arity(least=1, most=None, keywords=("default",)),
    "min": Arity(least=1, most=None, keywords=("default",)),
    "range": Arity(least=1, most=3),
    "round": Arity(least=1, most=2),
    "sorted": Arity(least=1, most=1, keywords=("reverse",)),
    "str": _ONE,
    "sum": Arity(least=1, most=2),
    "zip": Arity(least=2, most=None),
}
"""Pure functions. ``isfinite`` is ``math.isfinite``; ``is_close(a, b, tolerance=1e-9)`` compares
with a tolerance that is relative for large numbers and absolute near zero."""

METHODS: Mapping[str, Arity] = {
    "capitalize": Arity(least=0, most=0),
    "count": _ONE,
    "endswith": _ONE,
    "find": _ONE,
    "get": Arity(least=1, most=2),
    "index": _ONE,
    "isalpha": Arity(least=0, most=0),
    "isdigit": Arity(least=0, most=0),
    "items": Arity(least=0, most=0),
    "join": _ONE,
    "keys": Arity(least=0, most=0),
    "lower": Arity(least=0, most=0),
    "lstrip": Arity(least=0, most=1),
    "replace": Arity(least=2, most=2),
    "rstrip": Arity(least=0, most=1),
    "split": Arity(least=0, most=1),
    "splitlines": Arity(least=0, most=0),
    "startswith": _ONE,
    "strip": Arity(least=0, most=1),
    "title": Arity(least=0, most=0),
    "upper": Arity(least=0, most=0),
    "values": Arity(least=0, most=0),
}
"""Pure methods of text, of lists and tuples (``count``, ``index``) and
dicts (``get``, ``items``, ``keys``, ``values``)."""

ORDERINGS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""Comparisons that mean for plain values what they mean in Python."""

ITERATORS = frozenset({"range", "zip", "enumerate"})
"""Builtins whose value Python hands out piece by piece. They, the dict views (``items``, ``keys``,
``values``) and generators may only stand where they are consumed at once: as the source of a loop
or a comprehension, or as the argument of one of ``CONSUMERS``."""

VIEWS = frozenset({"items", "keys", "values"})

CONSUMERS = frozenset(
    {"all", "any", "enumerate", "list", "max", "min", "sorted", "sum", "zip", "join"}
)
"""What may be given an iterator; ``len`` also takes a range or a view."""

RESERVED = frozenset(BUILTINS)
"""Names that a variable, parameter or child may not take."""
