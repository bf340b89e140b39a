"""Two schemas as one: what satisfies the result satisfies both."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentkit.tools.canonical import json_key, same_json


def intersection(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any] | None:
    """One schema for two that hold together; None when no type is common to both.

    Parts that can not be merged on the spot are joined by ``allOf``. Of two different patterns,
    formats or ``multipleOf`` the first is kept.

    Args:
        one: A schema without references and combinators at its top.
        other: Another one.

    Example:
        >>> intersection({"type": "integer", "minimum": 1}, {"type": "number", "minimum": 3})
        {'type': 'integer', 'minimum': 3}
    """
    merged = {**other, **one}
    if "type" in one and "type" in other:
        merged["type"] = _common_types(one["type"], other["type"])
        if not merged["type"]:
            return None
    if "properties" in one or "properties" in other:
        merged["properties"] = _properties(one, other)
    if "prefixItems" in merged:
        merged["prefixItems"] = _places(one, other)
    if not _VALUES.isdisjoint(merged):
        merged["enum"] = _common_values(one, other)
        merged.pop("const", None)
    for keyword in one.keys() & other.keys() & _JOINED.keys():
        merged[keyword] = _JOINED[keyword](one[keyword], other[keyword])
    return merged


def _common_types(one: Any, other: Any) -> Any:
    left = [one] if isinstance(one, str) else list(one)
    right = [other] if isinstance(other, str) else list(other)
    # Every integer is a number.
    common = [kind for kind in left if kind in right or (kind == "integer" and "number" in right)]
    if "number" in left and "integer" in right and "integer" not in common:
        common.append("integer")
    return common[0] if len(common) == 1 else common


def _common_values(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Any]:
    left, right = _values(one), _values(other)
    if left is None or right is None:
        return list(left or right or [])
    allowed = set(map(json_key, right))
    return [value for value in left if json_key(value) in allowed]


def _values(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values: Sequence[Any] | None = schema.get("enum")
    return values


def _both(one: Any, other: Any) -> Any:
    if same_json(one, other) or other is True:
        return one
    if one is True:
        return other
    return {"allOf": [one, other]}


def _places(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Any]:
    """A schema for each place of a tuple; beyond its own places a schema's ``items`` holds."""
    left, right = one.get("prefixItems", ()), other.get("prefixItems", ())
    places = itertools.zip_longest(left, right)
    defaults = one.get("items", True), other.get("items", True)
    return [
        _both(
            first if index < len(left) else defaults[0],
            second if index < len(right) else defaults[1],
        )
        for index, (first, second) in enumerate(places)
    ]


def _properties(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    left, right = one.get("properties", {}), other.get("properties", {})
    merged = {
        name: _both(schema, right.get(name, other.get("additionalProperties", True)))
        for name, schema in left.items()
    }
    for name, schema in right.items():
        if name not in left:
            merged[name] = _both(schema, one.get("additionalProperties", True))
    return merged


def _all_names(one: Sequence[str], other: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*one, *other]))


_VALUES = frozenset({"enum", "const"})
_JOINED: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minLength", "minItems", "minimum", "exclusiveMinimum"), max),
    **dict.fromkeys(("maxLength", "maxItems", "maximum", "exclusiveMaximum"), min),
    **dict.fromkeys(("items", "additionalProperties"), _both),
    "required": _all_names,
}
