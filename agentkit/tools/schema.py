"""JSON Schema in the form we keep it: structure (L1) apart from words (L2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.messages import JsonObject


def detach_descriptions(schema: JsonObject) -> tuple[dict[str, Any], dict[str, str]]:
    """Split a parameters schema into its structure and its words.

    Descriptions are taken from properties at any depth of objects and arrays; those inside
    ``$defs`` or ``anyOf`` stay where they are, because one text there may serve several places.

    Returns:
        The schema without those descriptions, and the texts by dotted path
        (``city``, ``address.city``, ``items[].sku``).

    Example:
        >>> schema = {"properties": {"x": {"type": "integer", "description": "How many."}}}
        >>> detach_descriptions(schema)
        ({'properties': {'x': {'type': 'integer'}}}, {'x': 'How many.'})
    """
    texts: dict[str, str] = {}
    return _detach(schema, "", texts), texts


def _detach(schema: JsonObject, path: str, texts: dict[str, str]) -> dict[str, Any]:
    bare = dict(schema)
    if path and isinstance(bare.get("description"), str):
        text = bare.pop("description")
        if text:
            texts[path] = text
    if isinstance(schema.get("properties"), Mapping):
        bare["properties"] = {
            name: _detach(part, f"{path}.{name}" if path else name, texts)
            if isinstance(part, Mapping)
            else part
            for name, part in schema["properties"].items()
        }
    if path and isinstance(schema.get("items"), Mapping):
        bare["items"] = _detach(schema["items"], f"{path}[]", texts)
    return bare


def copied(value: Any) -> Any:
    """JSON data anew, down to the last list: who made it can no longer change this copy."""
    kind = value.__class__
    if kind is str or kind is bool or kind is int:  # most parts; asking Mapping takes its time
        return value
    if kind is dict or isinstance(value, Mapping):
        return {name: copied(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [copied(part) for part in value]
    return value


def attach_descriptions(schema: JsonObject, texts: Mapping[str, str]) -> dict[str, Any]:
    """Put the words back: the inverse of ``detach_descriptions``.

    Texts whose path is not in the schema are ignored.
    """
    return _attach(schema, "", texts) if texts else dict(schema)


def _attach(schema: JsonObject, path: str, texts: Mapping[str, str]) -> dict[str, Any]:
    full = dict(schema)
    if isinstance(schema.get("properties"), Mapping):
        full["properties"] = {
            name: _attach(part, f"{path}.{name}" if path else name, texts)
            if isinstance(part, Mapping)
            else part
            for name, part in schema["properties"].items()
        }
    if path and isinstance(schema.get("items"), Mapping):
        full["items"] = _attach(schema["items"], f"{path}[]", texts)
    if path in texts:
        full["description"] = texts[path]
    return full


def excerpt(schema: JsonObject, path: tuple[str | int, ...]) -> JsonObject | None:
    """The part of ``schema`` that governs the value at ``path``, without deeper properties.

    Args:
        schema: A parameters schema.
        path: Keys and indexes from the arguments object down to the value.

    Returns:
        The sub-schema, or None when the path leaves the schema.
    """
    part: Any = schema
    for step in path:
        if not isinstance(part, Mapping):
            return None
        part = part.get("items") if isinstance(step, int) else part.get("properties", {}).get(step)
    return part if isinstance(part, Mapping) else None
