"""Structured output by Anthropic: which models write to a schema themselves, and which schemas.

Anthropic, Structured outputs (``output_config.format``): Claude 4.5 and later; closed objects,
without bounds on numbers and lengths, without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from agentkit.messages import JsonObject

_VERSION = re.compile(r"claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_SINCE = (4, 5)
_KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
    | {"title", "description", "default", "format", "$ref"}
)
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


def writes_to_schemas(model: str) -> bool:
    """Whether a model writes to a schema itself, by its name; False for a name of another form.

    Example:
        >>> [writes_to_schemas(f"claude-{one}") for one in ("sonnet-4-5", "opus-4-20250514")]
        [True, False]
    """
    found = _VERSION.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _SINCE


def native_schema(schema: JsonObject) -> JsonObject | None:
    """The schema as Anthropic takes it, or None for one that it would refuse.

    Objects that list their properties are closed, which leaves fewer answers, all of them valid.
    """
    definitions = schema.get("$defs", {})
    if schema.get("type") != "object" or not isinstance(definitions, Mapping):
        return None
    root = {name: value for name, value in schema.items() if name != "$defs"}
    parts = {"#": root} | {f"#/$defs/{name}": part for name, part in definitions.items()}
    references: dict[str, set[str]] = {name: set() for name in parts}
    if not all(_fits(part, references[name]) for name, part in parts.items()):
        return None
    if not parts.keys() >= set().union(*references.values()) or _is_cyclic(references):
        return None
    closed: JsonObject = _closed(schema)
    return closed


def _is_cyclic(references: Mapping[str, set[str]]) -> bool:
    try:
        TopologicalSorter(references).prepare()
    except CycleError:
        return True
    return False


def _fits(schema: Any, references: set[str]) -> bool:
    """Whether Anthropic takes the keywords; collects what is referred to."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _KEYWORDS:
        return False
    if "$ref" in schema:
        references.add(str(schema["$ref"]))
    takes = _takes_kind(schema) and schema.get("format", "date") in _FORMATS
    return takes and all(_fits(part, references) for part in _parts(schema))


def _takes_kind(schema: JsonObject) -> bool:
    """Whether the type, its values and, for an object, its properties are written as they must."""
    if not isinstance(schema.get("type", ""), str) or not isinstance(schema.get("anyOf", []), list):
        return False
    values = schema.get("enum", [])
    if not isinstance(values, list) or any(isinstance(one, (Mapping, list)) for one in values):
        return False
    if schema.get("type") != "object":
        return not schema.keys() & {"properties", "required", "additionalProperties"}
    properties = schema.get("properties")
    is_listed = isinstance(properties, Mapping) and bool(properties)
    return is_listed and schema.get("additionalProperties", False) is False


def _parts(schema: JsonObject) -> list[Any]:
    items = [schema["items"]] if "items" in schema else []
    return [*schema.get("properties", {}).values(), *items, *schema.get("anyOf", [])]


def _closed(schema: Any) -> Any:
    """The schema with its objects closed."""
    made = dict(schema)
    for keyword in ("properties", "$defs"):
        if keyword in made:
            made[keyword] = {name: _closed(part) for name, part in made[keyword].items()}
    if "items" in made:
        made["items"] = _closed(made["items"])
    if "anyOf" in made:
        made["anyOf"] = [_closed(part) for part in made["anyOf"]]
    if made.get("type") == "object":
        made["additionalProperties"] = False
    return made
