"""Whether a learned rule is one, before it is asked what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.evolution.validation.sameness import shown_value
from agentkit.tools.rules.records import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
)

_TEXT = frozenset(
    {"parameter", "unit", "pattern", "format", "words", "example", "expression", "tool"}
)
_BOUNDS = ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of")
_NUMBER = frozenset(_BOUNDS)
_PARTS: Mapping[type, tuple[str, ...]] = {
    OneOf: ("parameter", "values"),
    Between: ("parameter", *_BOUNDS, "unit"),
    Form: ("parameter", "pattern", "format", "words", "example"),
    Requires: ("parameter", "others"),
    Condition: ("expression", "words"),
    CallBefore: ("tool", "parameter"),
}


def type_problem(rule: Any) -> str:
    """What is no rule, or of the wrong type in one; empty when nothing is.

    Example:
        >>> type_problem(OneOf(parameter="days", values=(1, 2)))
        ''
        >>> type_problem(Between(parameter="days", minimum="1"))
        "its minimum is '1', not a number"
    """
    parts = _PARTS.get(type(rule))
    if parts is None:
        return f"{shown_value(rule)} is no rule"
    for name in parts:
        value = getattr(rule, name)
        wanted = _wanted(name, value)
        if wanted:
            return f"its {name} is {shown_value(value)}, not {wanted}"
    return ""


def _wanted(name: str, value: Any) -> str:
    """What should stand there; empty when it does."""
    if name in _TEXT:
        return "" if isinstance(value, str) else "a text"
    if name in _NUMBER:
        fits = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        return "" if fits else "a number"
    kinds = str if name == "others" else (str, int, float, bool, type(None))
    fits = isinstance(value, tuple) and all(isinstance(one, kinds) for one in value)
    return "" if fits else "a list of texts" if name == "others" else "a list of values"
