r"""Values written as JavaScript source text, as BFCL reads them (``bfcl_eval`` 2026.3.23).

A text is read by the declared type. What does not fit its type stays text.

* ``String``: with or without quotes around it. ``any`` stays text, with its quotes.
* ``integer``: digits, perhaps with a minus. ``float``: the same, perhaps with a fraction.
  ``Bigint``: an integer with ``n`` after it. ``Boolean``: ``true`` or ``false``.
* ``array``: begins with ``[1, 2]``, ``new Array(1, 2)``, or with a list of lists in either form.
  Elements are read by the declared item type; those of a list of lists by their own form.
* ``dict``: begins with ``{key: value}`` and ends at the first ``}``; a comma parts pairs where a
  colon comes before the next comma. Keys and values lose the quotes around them, and a value is
  then what its own form says, so that ``"5"`` is 5. A list among the values is read as one.
* By their own form: ``true``, ``false``, text in quotes, numbers as Python reads them; else text.
* Elements are parted at every comma, and lists end at the first closing bracket, also inside
  quotes. What follows the literal is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentkit.metrics.literals import NumberForm, between, python_number, read_boolean

_NEW_ARRAY = re.compile(r"new\s+Array\(")
_ROWS = re.compile(r"(?:\[|new\s+Array\()\s*\[")
_NEXT_ROW = re.compile(r"\s*,\s*\[")
_ROW = re.compile(r"\[([^\]\n]*)\]")

JAVASCRIPT_TYPES: Mapping[str, type] = {
    "String": str,
    "integer": int,
    "float": float,
    "Bigint": int,
    "Boolean": bool,
    "dict": dict,
    "array": list,
    "any": str,
}
"""The Python type of the values of each JavaScript type."""


def read_javascript(text: str, kind: str, item: str | None = None) -> Any:
    """The value that a text stands for; the text itself when it is no literal of the type.

    Args:
        text: JavaScript source of one argument.
        kind: The declared type, one of ``JAVASCRIPT_TYPES``.
        item: The declared type of the elements of a list.

    Example:
        >>> read_javascript("{a: 'x', b: [1, 2]}", "dict")
        {'a': 'x', 'b': [1, 2]}
    """
    if kind in _SCALARS:
        return _SCALARS[kind](text)
    match kind:
        case "array":
            return _array(text.strip(), item)
        case "dict":
            return _object(text.strip())
    return text


def _string(text: str) -> str:
    return text[1:-1] if _is_quoted(text) else text


def _is_quoted(text: str) -> bool:
    return any(text.startswith(quote) and text.endswith(quote) for quote in "\"'")


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "String": _string,
    "integer": NumberForm(r"-?\d+", int).read,
    "float": NumberForm(r"-?\d+(?:\.\d+)?", float).read,
    "Bigint": NumberForm(r"-?\d+n", int, suffix=1).read,
    "Boolean": read_boolean,
}


def _literal(text: str) -> Any:
    """A value of no declared type, by its own form."""
    text = text.strip()
    if _is_quoted(text):
        return text[1:-1]
    found = read_boolean(text)
    return python_number(text) if found is text else found


def _array(text: str, item: str | None) -> Any:
    rows = _rows(text)
    if rows is not None:
        return [[_literal(part) for part in row.split(",")] for row in rows]
    opened = _NEW_ARRAY.match(text)
    start, end = (opened.end(), ")") if opened else (1, "]")
    inside = between(text, start, end) if opened or text.startswith("[") else None
    if inside is None:
        return text
    parts = [part.strip() for part in inside.split(",")] if inside.strip() else []
    return [_literal(part) if item is None else read_javascript(part, item) for part in parts]


def _rows(text: str) -> list[str] | None:
    """What stands in each list of a list of lists; None when the text is none."""
    opened = _ROWS.match(text)
    if opened is None:
        return None
    closing = re.compile(r"\s*\)" if text.startswith("n") else r"\s*\]")
    at = opened.end()
    while True:
        end = text.find("]", at)
        if end < 0 or "\n" in text[at:end]:
            return None
        if closed := closing.match(text, end + 1):
            whole = text[opened.end() - 1 : closed.end()]
            return [found.group(1) for found in _ROW.finditer(whole)]
        following = _NEXT_ROW.match(text, end + 1)
        at = following.end() if following else end + 1


def _object(text: str) -> Any:
    inside = between(text, 1, "}") if text.startswith("{") else None
    if inside is None:
        return text
    return {key.strip().strip("'\""): _member(value.strip()) for key, value in _pairs(inside)}


def _member(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return _array(text, None)
    return _literal(text.strip("'\""))


def _pairs(inside: str) -> Iterator[tuple[str, str]]:
    """Keys and values of an object, parted at commas that a further key follows."""
    at = 0
    while (colon := inside.find(":", at)) >= 0:
        if colon == at:  # a key has at least one character
            at += 1
            continue
        comma = inside.find(",", colon + 1)
        while comma >= 0:
            following = inside.find(",", comma + 1)
            if ":" in inside[comma + 2 : following if following >= 0 else None]:
                break
            comma = following
        yield inside[at:colon], inside[colon + 1 : comma if comma >= 0 else None]
        if comma < 0:
            return
        at = comma + 1
