"""Names of types as people write them in Python, Java, JavaScript and Go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentkit.tools.schema_validator import JSON_TYPES

_SPELLINGS = {
    "array": (
        "arraylist collection frozenset hashset iterable iterator linkedlist list sequence set "
        "slice tuple vector"
    ),
    "boolean": "bool",
    "integer": (
        "bigint biginteger byte int int16 int32 int64 int8 long short uint uint16 uint32 uint64 "
        "uint8 unsigned"
    ),
    "null": "nil none nonetype undefined void",
    "number": "bigdecimal decimal double float float32 float64 numeric real",
    "object": (
        "defaultdict dict dictionary hashmap hashtable json linkedhashmap map mapping ordereddict "
        "record struct treemap typeddict"
    ),
    "string": (
        "char character charsequence date datetime email str text time timestamp uri url uuid"
    ),
}
_ANYTHING = frozenset({"any", "interface{}", "mixed", "unknown", "*", "?"})
_BY_SPELLING: Mapping[str, str] = {
    **{spelling: name for name, group in _SPELLINGS.items() for spelling in group.split()},
    **{name: name for name in JSON_TYPES},
}
_GENERIC = re.compile(r"(?P<outer>[\w.]+)\s*[\[<](?P<inner>.*)[\]>]")
_MAX_LENGTH = 200
_MAX_NESTING = 8


def read_type_name(text: str, *, nesting: int = 0) -> dict[str, Any] | None:
    """The schema that a type's name stands for, or None when nobody could tell.

    Args:
        text: Such as ``dict``, ``ArrayList<String>``, ``List[float]``, ``int | None``, ``str[]``.
        nesting: How many brackets were opened already.

    Returns:
        A schema with at most ``type``, ``items``, ``additionalProperties`` and ``anyOf``; empty
        for "any type".

    Example:
        >>> read_type_name("HashMap"), read_type_name("any"), read_type_name("Date (yyyy)")
        ({'type': 'object'}, {}, None)
        >>> read_type_name("list[int] | None")
        {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
    """
    text = text.strip()
    name = text.casefold().removeprefix("typing.").removeprefix("java.lang.")
    if name in _ANYTHING:
        return {}
    if name in _BY_SPELLING:
        return {"type": _BY_SPELLING[name]}
    if len(text) > _MAX_LENGTH or nesting > _MAX_NESTING:
        return None
    alternatives = _split(text, "|")
    if len(alternatives) > 1:
        return _union([read_type_name(part, nesting=nesting + 1) for part in alternatives])
    if text.endswith("[]"):
        return _array_of(read_type_name(text[:-2], nesting=nesting + 1))
    generic = _GENERIC.fullmatch(text)
    return None if generic is None else _generic(generic["outer"], generic["inner"], nesting + 1)


def _generic(outer: str, inner: str, nesting: int) -> dict[str, Any] | None:
    outer = outer.casefold().removeprefix("typing.")
    parts = [read_type_name(part, nesting=nesting) for part in _split(inner, ",")]
    if outer == "optional":
        return _union([*parts, {"type": "null"}])
    if outer == "union":
        return _union(parts)
    kind = _BY_SPELLING.get(outer)
    if kind == "array":
        return _array_of(parts[0] if all(part == parts[0] for part in parts) else {})
    if kind == "object":
        return {"type": "object"} | ({"additionalProperties": parts[-1]} if parts[-1] else {})
    return None


def _array_of(items: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if items is None else {"type": "array", "items": items}


def _union(parts: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    branches: list[dict[str, Any]] = []
    for part in parts:
        if part is None:
            return None
        if not part:
            return {}
        if part not in branches:
            branches.append(part)
    if len(branches) == 1:
        return branches[0]
    if all(branch.keys() == {"type"} and isinstance(branch["type"], str) for branch in branches):
        return {"type": [branch["type"] for branch in branches]}
    return {"anyOf": branches}


def _split(text: str, separator: str) -> list[str]:
    """Split at separators that stand outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[<") - (character in "]>")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()] or [""]
