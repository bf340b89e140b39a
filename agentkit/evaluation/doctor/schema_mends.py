"""Cleaning a schema: changes that take nothing away from what a call may hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from agentkit.evaluation.doctor.parts import parts
from agentkit.messages import JsonObject
from agentkit.retrieval.words import terms

_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
_TYPING = frozenset({"type", "anyOf", "oneOf", "allOf", "$ref", "not"})


def with_typed_enums(schema: JsonObject) -> JsonObject:
    """Where an enum stands without a type and all its values are of one, that type is added."""
    return _rewritten(schema, _typed_enum)


def enum_type(schema: JsonObject) -> str | None:
    """The one type of the values of an enum that declares none; None when there is no such."""
    values = schema.get("enum")
    if not isinstance(values, list) or not values or schema.keys() & _TYPING:
        return None
    types = {_TYPES.get(type(value)) for value in values}
    if types == {"integer", "number"}:
        return "number"
    return types.pop() if len(types) == 1 else None


def _typed_enum(schema: dict[str, Any], _name: str) -> dict[str, Any]:
    found = enum_type(schema)
    return schema if found is None else {"type": found, **schema}


def with_unique_enums(schema: JsonObject) -> JsonObject:
    """Each value of an enum once."""
    return _rewritten(schema, _unique_enum)


def repeated_values(schema: JsonObject) -> tuple[str, ...]:
    """Values that an enum holds again, as JSON."""
    values = schema.get("enum")
    if not isinstance(values, list):
        return ()
    texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
    first = {text: at for at, text in reversed([*enumerate(texts)])}
    return tuple(text for at, text in enumerate(texts) if first[text] != at)


def _unique_enum(schema: dict[str, Any], _name: str) -> dict[str, Any]:
    if not repeated_values(schema):
        return schema
    unique = {json.dumps(v, sort_keys=True, default=str): v for v in reversed(schema["enum"])}
    return {**schema, "enum": list(reversed(unique.values()))}


def without_ghosts(schema: JsonObject) -> JsonObject:
    """Required names that are no properties are dropped."""
    return _rewritten(schema, _no_ghosts)


def ghosts(schema: JsonObject) -> tuple[str, ...]:
    """Required names that are no properties of an object which lists its properties."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return ()
    if schema.keys() & {"patternProperties", "allOf", "anyOf", "oneOf", "$ref"}:
        return ()  # the name may be described there
    return tuple(name for name in required if name not in properties)


def _no_ghosts(schema: dict[str, Any], _name: str) -> dict[str, Any]:
    absent = set(ghosts(schema))
    if not absent:
        return schema
    return {**schema, "required": [name for name in schema["required"] if name not in absent]}


def without_titles(schema: JsonObject) -> JsonObject:
    """Titles that only repeat the name are dropped, and ``$schema``: generators leave them."""
    return _rewritten(schema, _no_title)


def is_empty_title(schema: JsonObject, name: str) -> bool:
    """Whether the title of a property says no more than its name, as pydantic writes it."""
    title = schema.get("title")
    return isinstance(title, str) and set(terms(title)) <= set(terms(name))


def _no_title(schema: dict[str, Any], name: str) -> dict[str, Any]:
    dropped = {"$schema"} | ({"title"} if name and is_empty_title(schema, name) else set())
    return {key: value for key, value in schema.items() if key not in dropped}


def _rewritten(
    schema: JsonObject, change: Callable[[dict[str, Any], str], dict[str, Any]]
) -> JsonObject:
    """The schema with every part changed; the very same object when nothing is."""
    if all(change(dict(part.schema), part.name) == part.schema for part in parts(schema)):
        return schema
    return _rebuilt(schema, "", change)


def _rebuilt(
    schema: JsonObject, name: str, change: Callable[[dict[str, Any], str], dict[str, Any]]
) -> dict[str, Any]:
    changed = change(dict(schema), name)
    return {key: _rebuilt_keyword(key, value, change) for key, value in changed.items()}


def _rebuilt_keyword(
    key: str, value: Any, change: Callable[[dict[str, Any], str], dict[str, Any]]
) -> Any:
    named = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
    if key in named and isinstance(value, Mapping):
        return {
            name: _rebuilt(part, name, change) if isinstance(part, Mapping) else part
            for name, part in value.items()
        }
    if key in {"anyOf", "oneOf", "allOf", "prefixItems"} and isinstance(value, list):
        return [_rebuilt(p, "", change) if isinstance(p, Mapping) else p for p in value]
    if key in {"items", "additionalProperties", "not", "if", "then", "else"}:
        return _rebuilt(value, "", change) if isinstance(value, Mapping) else value
    return value
