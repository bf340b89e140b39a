r"""Values written as Java source text, as BFCL reads them (``bfcl_eval`` 2026.3.23).

A text is read by the declared type. What does not fit its type stays text.

* ``byte``, ``short``, ``integer``: digits, perhaps with a minus. ``long``: the same with ``L``
  after it. ``double``: a decimal number, perhaps with an exponent; ``float``: the same with ``f``.
* ``boolean``: ``true`` or ``false``. ``String``, ``char`` and ``any`` stay text.
* ``ArrayList``: somewhere in the text ``new ArrayList<T>(Arrays.asList(1, 2))``, or
  ``new ArrayList<T>() {{ add(1); add(2); }}``, or ``new ArrayList<T>()``. Elements of type
  ``String`` and ``char`` lose their first and last character.
* ``Array``: somewhere in the text ``new T[]{1, 2}``. Elements of type ``String`` keep their quotes,
  so that no right array literal of strings ever passes upstream; a JSON list does here.
* ``HashMap``: somewhere in the text ``new HashMap<K, V>() {{ put("a", 1); }}`` or
  ``new HashMap<K, V>()``. A value is what its own form says: ``true``, ``"a"``, ``1L``, ``1.5f``
  or a Python number.
* Elements are parted at every comma, values end at the first closing bracket, also inside quotes.

The other collections have no reading upstream, where an answer that gives one ends the evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentkit.metrics.literals import NumberForm, between, python_number, read_boolean

_NEW_LIST = re.compile(r"new\s+ArrayList<\w*>\(")
_NEW_ARRAY = re.compile(r"new\s+\w+\[\]\s*\{")
_NEW_MAP = re.compile(r"new\s+HashMap<")
_MAP_BODY = re.compile(r">\s*\(\)(?:\s*\{\s*\{?)?")
_LIST_BODY = re.compile(r"\)\s*\{\{\s*")
_AS_LIST = "Arrays.asList("

JAVA_TYPES: Mapping[str, type] = {
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": bool,
    "char": str,
    "String": str,
    "any": str,
    "Array": list,
    "ArrayList": list,
    "HashMap": dict,
}
"""The Python type of the values of each Java type that upstream reads."""


def read_java(text: str, kind: str, item: str | None = None) -> Any:
    """The value that a text stands for; the text itself when it is no literal of the type.

    Args:
        text: Java source of one argument.
        kind: The declared type, one of ``JAVA_TYPES``.
        item: The declared type of the elements of a list.

    Example:
        >>> read_java("42L", "long"), read_java("42", "long"), read_java("new int[]{1}", "Array")
        (42, '42', [1])
    """
    if kind in _SCALARS:
        return _SCALARS[kind](text)
    match kind:
        case "ArrayList":
            return _array_list(text, item)
        case "Array":
            return _array(text, item)
        case "HashMap":
            return _hash_map(text)
    return text


_WHOLE = NumberForm(r"-?\d+", int)
_LONG = NumberForm(r"-?\d+[lL]", int, suffix=1)
_DOUBLE = NumberForm(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", float)
_FLOAT = NumberForm(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[fF]", float, suffix=1)

_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "byte": _WHOLE.read,
    "short": _WHOLE.read,
    "integer": _WHOLE.read,
    "long": _LONG.read,
    "float": _FLOAT.read,
    "double": _DOUBLE.read,
    "boolean": read_boolean,
}


def _element(text: str, item: str | None) -> Any:
    """An element of an ``ArrayList``."""
    if item in {"String", "char"}:
        return text[1:-1]
    return _literal(text) if item is None else read_java(text, item)


def _literal(text: str) -> Any:
    """A value of no declared type, by its own form."""
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    for read in (read_boolean, _LONG.read, _FLOAT.read):
        found = read(text)
        if found is not text:
            return found
    return python_number(text)


def _array_list(text: str, item: str | None) -> Any:
    starts = [found.end() for found in _NEW_LIST.finditer(text)]
    for start in starts:
        listed = text.startswith(_AS_LIST, start)
        inside = between(text, start + len(_AS_LIST), "))") if listed else None
        if inside:
            return [_element(part.strip(), item) for part in inside.split(",")]
    for start in starts:
        opened = _LIST_BODY.match(text, start)
        end = -1 if opened is None else text.find("}}", opened.end())
        if opened is not None and end >= 0:
            return [_element(part.strip(), item) for part in _added(text[opened.end() : end])]
    return [] if any(text.startswith(")", start) for start in starts) else text


def _added(block: str) -> Iterator[str]:
    """What each ``add(...)`` adds."""
    at = block.find("add(")
    while at >= 0:
        inside = between(block, at + 4, ")")
        if inside:
            yield inside
        at = block.find("add(", at + 4 + len(inside or ""))


def _array(text: str, item: str | None) -> Any:
    for found in _NEW_ARRAY.finditer(text):
        inside = between(text, found.end(), "}")
        if inside is not None:
            parts = [part.strip() for part in inside.split(",") if part.strip()]
            return [_literal(part) if item is None else read_java(part, item) for part in parts]
    return text


def _hash_map(text: str) -> Any:
    bodies = [
        body for found in _NEW_MAP.finditer(text) if (body := _MAP_BODY.search(text, found.end()))
    ]
    for body in bodies:
        end = text.find("}", body.end())
        if "{" in body.group() and end >= 0:
            return dict(_put(text[body.end() : end]))
    return {} if bodies else text


def _put(block: str) -> Iterator[tuple[str, Any]]:
    """Key and value of each ``put("key", value)``."""
    for part in block.split('put("')[1:]:
        key, comma, rest = part.partition('",')
        value, bracket, _ = rest.lstrip().partition(")")
        if comma and bracket and "\n" not in key + value:
            yield key, _literal(value.strip())
