"""Learned rules as JSON, and back. What a file holds is checked part by part."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from agentkit.tools.rules.records import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    Rule,
)

_Read = Callable[[Any], Any]


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """The rule as a JSON object; parts that equal their default are left out.

    Example:
        >>> from agentkit.tools.rules import OneOf
        >>> rule_to_json(OneOf(parameter="periods", values=(36, 48, 60)))
        {'kind': 'one_of', 'parameter': 'periods', 'values': [36, 48, 60]}
    """
    parts = ((field.name, getattr(rule, field.name), field.default) for field in fields(rule))
    given = {name: value for name, value, default in parts if value != default}
    given.pop("kind", None)
    listed = {n: list(v) if isinstance(v, tuple) else v for n, v in given.items()}
    return {"kind": rule.kind, **listed}


def rule_from_json(record: Mapping[str, Any]) -> Rule:
    """The inverse of ``rule_to_json``.

    Whether the rule makes sense for a tool is another question, see ``rule_problems``.

    Raises:
        TypeError: The record is no rule: its kind or one of its parts is unknown, absent or of the
            wrong type.
    """
    if not isinstance(record, Mapping):
        raise TypeError(f"a rule is an object with a kind, got {record!r:.80}")
    given = dict(record)
    kind = given.pop("kind", None)
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise TypeError(f"there is no rule of kind {kind!r:.80}; known are {', '.join(_KINDS)}")
    make, parts = known
    if strangers := given.keys() - parts.keys():
        names = ", ".join(sorted(map(repr, strangers)))
        raise TypeError(f"a rule of kind {kind} has no part {names}; it has {', '.join(parts)}")
    return make(**{name: _read(kind, name, parts[name], value) for name, value in given.items()})


def _read(kind: str, name: str, read: _Read, value: Any) -> Any:
    try:
        return read(value)
    except TypeError as error:
        raise TypeError(f"the part {name} of a rule of kind {kind} is {error}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text, got {value!r:.80}")
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | None) or not _is_json(value):
        raise TypeError(f"a number, got {value!r:.80}")
    return value


def _is_json(value: Any) -> bool:
    """Not so for infinities and what is no number, which Python reads out of JSON text."""
    return not isinstance(value, float) or math.isfinite(value)


def _list_of(what: str, *types: type) -> _Read:
    def read(value: Any) -> tuple[Any, ...]:
        fits = isinstance(value, list | tuple) and all(isinstance(v, types) for v in value)
        if not fits or not all(map(_is_json, value)):
            raise TypeError(f"a list of {what}, got {value!r:.80}")
        return tuple(value)

    return read


_scalars = _list_of("texts, numbers, true, false or null", str, int, float, bool, type(None))
_names = _list_of("texts", str)

_KINDS: Mapping[str, tuple[Callable[..., Rule], Mapping[str, _Read]]] = MappingProxyType(
    {
        "one_of": (OneOf, {"parameter": _text, "values": _scalars}),
        "between": (
            Between,
            {
                "parameter": _text,
                "minimum": _number,
                "maximum": _number,
                "exclusive_minimum": _number,
                "exclusive_maximum": _number,
                "multiple_of": _number,
                "unit": _text,
                "measure": _text,
            },
        ),
        "form": (
            Form,
            {
                "parameter": _text,
                "pattern": _text,
                "format": _text,
                "words": _text,
                "example": _text,
            },
        ),
        "requires": (Requires, {"parameter": _text, "others": _names}),
        "condition": (Condition, {"expression": _text, "words": _text}),
        "call_before": (CallBefore, {"tool": _text, "parameter": _text}),
    }
)
