"""Walking a schema: every sub-schema, with the path that people know it by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentkit.messages import JsonObject

Role: TypeAlias = Literal["root", "property", "pattern", "items", "branch", "definition"]

_MAPS: Mapping[str, Role] = {
    "properties": "property",
    "patternProperties": "pattern",
    "$defs": "definition",
    "definitions": "definition",
    "dependentSchemas": "branch",
}
_LISTS: Mapping[str, Role] = {
    "anyOf": "branch",
    "oneOf": "branch",
    "allOf": "branch",
    "prefixItems": "items",
}
_SINGLES: Mapping[str, Role] = {
    "items": "items",
    "additionalProperties": "items",
    "not": "branch",
    "if": "branch",
    "then": "branch",
    "else": "branch",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One sub-schema.

    Attributes:
        path: Dotted path as in ``Description.parameters``: ``address.city``, ``items[].sku``; a
            branch of a union has the path of the union.
        role: How it stands in the schema above it.
        schema: The sub-schema.
        depth: Objects and arrays above it.
        name: The property's own name; empty for other roles.
    """

    path: str
    role: Role
    schema: JsonObject
    depth: int
    name: str = ""

    @property
    def own(self) -> JsonObject:
        """The keywords of this schema that hold no other schemas."""
        return {key: value for key, value in self.schema.items() if not _holds_schemas(key, value)}


def parts(schema: JsonObject) -> Iterator[Part]:
    """Every sub-schema of ``schema``, itself first, in document order.

    References are not followed, so a recursive schema ends as well.

    Example:
        >>> schema = {"properties": {"tags": {"type": "array", "items": {"type": "string"}}}}
        >>> [(part.path, part.role) for part in parts(schema)]
        [('', 'root'), ('tags', 'property'), ('tags[]', 'items')]
    """
    waiting = [Part(path="", role="root", schema=schema, depth=0)]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(list(_below(part))))


def _below(part: Part) -> Iterator[Part]:
    for key, value in part.schema.items():
        if key in _MAPS and isinstance(value, Mapping):
            for name, item in value.items():
                path = _named(part.path, key, name)
                yield from _part(part, _MAPS[key], path, item, name=name)
        elif key in _LISTS and isinstance(value, list):
            for item in value:
                yield from _part(part, _LISTS[key], _placed(part.path, key), item)
        elif key in _SINGLES:
            yield from _part(part, _SINGLES[key], _placed(part.path, key), value)


def _part(above: Part, role: Role, path: str, schema: Any, name: str = "") -> Iterator[Part]:
    if isinstance(schema, Mapping):
        deeper = role != "branch"
        yield Part(path=path, role=role, schema=schema, depth=above.depth + deeper, name=name)


def _holds_schemas(key: str, value: Any) -> bool:
    return (
        (key in _MAPS and isinstance(value, Mapping))
        or (key in _LISTS and isinstance(value, list))
        or (key in _SINGLES and isinstance(value, Mapping))
    )


def _named(path: str, key: str, name: str) -> str:
    if key in {"$defs", "definitions"}:
        return f"{key}.{name}"
    return f"{path}.{name}" if path else str(name)


def _placed(path: str, key: str) -> str:
    if key in {"items", "prefixItems"}:
        return f"{path}[]"
    return f"{path}.*" if key == "additionalProperties" else path


def type_names(schema: JsonObject) -> frozenset[str]:
    """The types that a schema declares by ``type``; empty when it declares none."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return frozenset((declared,))
    if isinstance(declared, list):
        return frozenset(name for name in declared if isinstance(name, str))
    return frozenset()
