"""Schemas part by part, as the doctor and the exports look at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentkit.messages import JsonObject
from agentkit.retrieval.words import terms
from agentkit.tools.schema import SCHEMA_KEYWORDS, SCHEMA_LIST_KEYWORDS, SCHEMA_MAP_KEYWORDS

Role: TypeAlias = Literal["root", "property", "pattern", "items", "branch", "definition"]

_ROLES: Mapping[str, Role] = {
    "properties": "property",
    "patternProperties": "pattern",
    "$defs": "definition",
    "definitions": "definition",
    "items": "items",
    "prefixItems": "items",
    "additionalProperties": "items",
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
        role = _ROLES.get(key, "branch")
        for name, schema in _sub_schemas(key, value):
            yield Part(
                path=_path(part.path, key, name),
                role=role,
                schema=schema,
                depth=part.depth + (role != "branch"),
                name=name,
            )


def _sub_schemas(key: str, value: Any) -> Iterator[tuple[str, JsonObject]]:
    """The schemas that a keyword holds, with their names where it has names."""
    if key in SCHEMA_MAP_KEYWORDS and isinstance(value, Mapping):
        yield from ((name, part) for name, part in value.items() if isinstance(part, Mapping))
    elif key in SCHEMA_LIST_KEYWORDS and isinstance(value, list):
        yield from (("", part) for part in value if isinstance(part, Mapping))
    elif key in SCHEMA_KEYWORDS and isinstance(value, Mapping):
        yield "", value


def _holds_schemas(key: str, value: Any) -> bool:
    if key in SCHEMA_LIST_KEYWORDS:
        return isinstance(value, list)
    return key in SCHEMA_MAP_KEYWORDS | SCHEMA_KEYWORDS and isinstance(value, Mapping)


def _path(path: str, key: str, name: str) -> str:
    if key in {"$defs", "definitions"}:
        return f"{key}.{name}"
    if name:
        return f"{path}.{name}" if path else name
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


def ghosts(schema: JsonObject) -> tuple[str, ...]:
    """Required names that are no properties of an object which lists its properties."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return ()
    if schema.keys() & {"patternProperties", "allOf", "anyOf", "oneOf", "$ref"}:
        return ()  # the name may be described there
    return tuple(name for name in required if name not in properties)


def is_empty_title(schema: JsonObject, name: str) -> bool:
    """Whether the title of a property says no more than its name, as pydantic writes it."""
    title = schema.get("title")
    return isinstance(title, str) and set(terms(title)) <= set(terms(name))
