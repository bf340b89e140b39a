"""Schemas that need no repair, recognised at a quarter of the cost of looking for one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from agentkit.tools.patterns import is_compilable
from agentkit.tools.sources.type_names import JSON_TYPES

_DEEPEST = 32
_TYPES = frozenset(JSON_TYPES)


def normal_copy(raw: object, depth: int = 0) -> dict[str, Any] | None:
    """A copy of a schema that is in the form we keep; None for one that may not be.

    Only what tools usually have is known here. Everything else, such as a keyword of another
    dialect or of nobody, is left to the walk that looks for repairs.

    Args:
        raw: Decoded JSON.
        depth: How deep it stands.

    Example:
        >>> normal_copy({"type": "array", "items": {"type": "string"}})
        {'type': 'array', 'items': {'type': 'string'}}
        >>> normal_copy({"type": "list"}) is None
        True
    """
    if type(raw) is not dict or depth > _DEEPEST:
        return None
    kept: dict[str, Any] = {}
    for key, rule in raw.items():
        fits = _PLAIN.get(key)
        if fits is not None:
            if not fits(rule):
                return None
            kept[key] = list(rule) if type(rule) is list else rule
            continue
        found = _below(key, rule, depth + 1)
        if found is None:
            return None
        kept[key] = found
    return None if _lacks_items(kept) else kept


def _below(key: str, rule: Any, depth: int) -> Any:
    """A copy of what stands under a keyword that holds schemas; None for what may need repair."""
    if key in {"properties", "$defs"}:
        if type(rule) is not dict:
            return None
        named = {name: normal_copy(part, depth) for name, part in rule.items()}
        return None if None in named.values() or not _are_texts(named) else named
    if key == "items":
        return normal_copy(rule, depth)
    if key == "additionalProperties":
        return rule if type(rule) is bool else normal_copy(rule, depth)
    if key == "anyOf" and type(rule) is list and rule:
        parts = [normal_copy(part, depth) for part in rule]
        return None if None in parts else parts
    return None


def _lacks_items(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return (kind == "array" or (type(kind) is list and "array" in kind)) and "items" not in schema


def _are_texts(values: Any) -> bool:
    return all(type(value) is str for value in values)


def _is_text(rule: Any) -> bool:
    return type(rule) is str


def _is_type(rule: Any) -> bool:
    if type(rule) is str:
        return rule in _TYPES
    return type(rule) is list and _is_names(rule) and bool(rule) and _TYPES.issuperset(rule)


def _is_names(rule: Any) -> bool:
    return type(rule) is list and _are_texts(rule) and len(set(rule)) == len(rule)


def _is_number(rule: Any) -> bool:
    return type(rule) is int or (type(rule) is float and math.isfinite(rule))


def _is_count(rule: Any) -> bool:
    return type(rule) is int and rule >= 0


def _is_filled_list(rule: Any) -> bool:
    return type(rule) is list and bool(rule)


def _is_pattern(rule: Any) -> bool:
    return type(rule) is str and is_compilable(rule)


def _is_anything(_rule: Any) -> bool:
    return True


_KEYWORDS_OF: dict[Callable[[Any], bool], str] = {
    _is_anything: "const default",
    _is_count: "maxItems maxLength minItems minLength",
    _is_filled_list: "enum",
    _is_names: "required",
    _is_number: "exclusiveMaximum exclusiveMinimum maximum minimum",
    _is_pattern: "pattern",
    _is_text: "$ref description format title",
    _is_type: "type",
}

_PLAIN: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {keyword: fits for fits, keywords in _KEYWORDS_OF.items() for keyword in keywords.split()}
)
"""Keywords without schemas below them, and what their value is where nothing is to be mended."""
