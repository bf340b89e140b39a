"""The texts of a definition, by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.tools.definition import ToolDefinition


def field_texts(definition: ToolDefinition) -> tuple[str, str, str, str]:
    """Name, description, names of parameters and texts of parameters, in the order of the weights.

    The description is the summary, the usage rules and the tags; parameters are those at any
    depth, and their texts hold the allowed values too.

    Example:
        >>> area = ToolDefinition.from_schema("area", "Of a circle.", {"properties": {"r": {}}})
        >>> field_texts(area)
        ('area', 'Of a circle.', 'r', '')
    """
    names: list[str] = []
    texts: list[str] = list(definition.description.parameters.values())
    for name, schema in _parameters(definition.signature.parameters):
        names.append(name)
        texts.extend(str(value) for value in schema.get("enum") or ())
    description = " ".join((definition.text, *definition.description.tags))
    return definition.name, description, " ".join(names), " ".join(texts)


def _parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each property of a schema with its name, through nested objects and arrays."""
    for name, part in (schema.get("properties") or {}).items():
        if isinstance(part, Mapping):
            yield name, part
            yield from _parameters(part)
    if isinstance(schema.get("items"), Mapping):
        yield from _parameters(schema["items"])
