"""Whether what stands in the place of a rule is one, part by part.

Records are not checked when they are made. What a model or a file gave may hold anything, and is
asked this before it is asked what it means.
"""

from __future__ import annotations

import math
from dataclasses import fields
from reprlib import Repr
from typing import Any, get_args

from agentkit.tools.rules.records import Rule

_TEXT = frozenset(
    {"parameter", "unit", "pattern", "format", "words", "example", "expression", "tool", "measure"}
)
_NUMBERS = ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of")
_REPR = Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 3, 60, 60


def why_malformed(rule: Any) -> str:
    """What is no rule, or of the wrong type in one; empty when nothing is.

    Example:
        >>> from agentkit.tools.rules import Between, OneOf
        >>> why_malformed(OneOf(parameter="days", values=(1, 2)))
        ''
        >>> why_malformed(Between(parameter="days", minimum="1"))
        "its minimum is '1', not a number"
    """
    if type(rule) not in get_args(Rule):
        return f"{_shown(rule)} is no rule"
    for name in (field.name for field in fields(rule) if field.name != "kind"):
        value = getattr(rule, name)
        wanted = _wanted(name, value)
        if wanted:
            return f"its {name} is {_shown(value)}, not {wanted}"
    return ""


def is_finite(number: float) -> bool:
    """Whether a number is one to compare with, also an integer that no float can hold.

    Example:
        >>> is_finite(10**400), is_finite(float("inf"))
        (True, False)
    """
    return isinstance(number, int) or math.isfinite(number)


def _wanted(name: str, value: Any) -> str:
    """What should stand there; empty when it does."""
    if name in _TEXT:
        return "" if isinstance(value, str) and _is_unicode(value) else "a text"
    if name in _NUMBERS:
        fits = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        return "" if fits else "a number"
    kinds = str if name == "others" else (str, int, float, bool, type(None))
    fits = isinstance(value, tuple) and all(
        isinstance(one, kinds) and (not isinstance(one, str) or _is_unicode(one)) for one in value
    )
    return "" if fits else "a list of texts" if name == "others" else "a list of values"


def _is_unicode(text: str) -> bool:
    """Whether it can be written: half of a surrogate pair can not, and has no digest."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _shown(value: Any) -> str:
    """A value as it is written in Python, short, whatever it is."""
    try:
        return _REPR.repr(value)
    except ValueError:  # an integer with more digits than Python prints
        return "a value with very many digits"
