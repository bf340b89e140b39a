"""What OpenAPI's schemas say differently from JSON Schema 2020-12, one object at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

Direction = Literal["request", "response"]

HIDDEN: Mapping[Direction, str] = {"request": "readOnly", "response": "writeOnly"}
"""The flag of a property that does not travel in a direction."""

DROPPED = frozenset(
    {
        "$anchor",
        "$comment",
        "$defs",  # every reference is rewritten, so nothing refers to these any more
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$schema",
        "$vocabulary",
        "definitions",
        "discriminator",  # becomes a const in the branches, see ``tagged``
        "example",  # becomes one of ``examples``
        "externalDocs",
        "nullable",  # becomes a type
        "readOnly",
        "writeOnly",
        "xml",
    }
)
"""Keywords that are left out, or that another takes the place of."""

_LONGEST_EXAMPLE = 200
_WORDS: tuple[str, ...] = ("description", "title")
_APPLICATORS = ("$ref", "allOf", "anyOf", "oneOf")


def examples_of(raw: Mapping[str, Any]) -> list[Any]:
    """The short examples of a schema or a parameter: ``example`` and ``examples`` of all versions.

    ``examples`` is a list in a schema and a map of objects with a ``value`` elsewhere.
    """
    found: list[Any] = []
    if "example" in raw:
        found.append(raw["example"])
    named = raw.get("examples")
    if isinstance(named, list):
        found += named
    elif isinstance(named, Mapping):
        found += [item["value"] for item in named.values() if _has_value(item)]
    return [item for item in found if _is_short(item)][:3]


def _has_value(item: object) -> bool:
    return isinstance(item, Mapping) and "value" in item


def _is_short(value: object) -> bool:
    return len(json.dumps(value, default=str)) <= _LONGEST_EXAMPLE


def allow_null(schema: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0's ``nullable: true``: the schema, or null.

    Example:
        >>> allow_null({"type": "string", "enum": ["a"]})
        {'type': ['string', 'null'], 'enum': ['a', None]}
        >>> allow_null({"$ref": "#/$defs/Pet", "description": "A pet."})
        {'anyOf': [{'$ref': '#/$defs/Pet'}, {'type': 'null'}], 'description': 'A pet.'}
    """
    changed = dict(schema)
    if any(key in schema for key in _APPLICATORS):
        words = {key: changed.pop(key) for key in _WORDS if key in changed}
        return {"anyOf": [changed, {"type": "null"}]} | words
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        changed["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        changed["type"] = [*kind, "null"]
    members = schema.get("enum")
    if isinstance(members, list) and None not in members:
        changed["enum"] = [*members, None]
    return changed


def tags_of(discriminator: object) -> tuple[str, Mapping[str, list[str]]]:
    """The property of a discriminator, and for each branch's reference the values that mean it.

    Without a ``mapping`` the values are the names of schemas, but real documents often mean
    something else; so only what is written counts.
    """
    by_reference: dict[str, list[str]] = {}
    if not isinstance(discriminator, Mapping):
        return "", by_reference
    name, mapping = discriminator.get("propertyName"), discriminator.get("mapping")
    if not isinstance(name, str) or not isinstance(mapping, Mapping):
        return "", by_reference
    for value, target in mapping.items():
        if isinstance(target, str):
            is_name = "/" not in target and "#" not in target and "." not in target
            reference = f"#/components/schemas/{target}" if is_name else target
            by_reference.setdefault(reference, []).append(value)
    return name, by_reference


def tagged(branch: dict[str, Any], name: str, values: list[str]) -> dict[str, Any]:
    """A branch of ``oneOf`` that says by which values of the discriminator it is meant."""
    rule: dict[str, Any] = {"const": values[0]} if len(values) == 1 else {"enum": values}
    return {**branch, "properties": {name: rule}, "required": [name]}
