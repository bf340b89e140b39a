"""Shapes from JSON Schema, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentkit.composites.inference.shape import (
    ANYTHING,
    KINDS,
    NEVER,
    Kind,
    Shape,
    join,
    of_constant,
)
from agentkit.messages import JsonObject
from agentkit.tools.schema import resolve_local

_DEEPEST = 6
_MOST_BRANCHES = 3
"""More types than these together say too little to be declared."""

_KINDS_OF: Mapping[str, frozenset[Kind]] = {
    "array": frozenset({"array"}),
    "boolean": frozenset({"boolean"}),
    "integer": frozenset({"integer"}),
    "null": frozenset({"null"}),
    "number": frozenset({"integer", "number"}),
    "object": frozenset({"object"}),
    "string": frozenset({"string"}),
}


def shape_of_schema(schema: Any, root: JsonObject, *, depth: int = 0) -> Shape:
    """A shape that holds every value that satisfies a schema.

    Args:
        schema: The schema, or a part of a document.
        root: The document that local references point into.
        depth: How deep in the document this is.
    """
    if schema is False:
        return NEVER
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return ANYTHING
    if "$ref" in schema:
        target = resolve_local(root, schema["$ref"]) if isinstance(schema["$ref"], str) else None
        return ANYTHING if target is None else shape_of_schema(target, root, depth=depth + 1)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and values:
        return join(map(of_constant, values))
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            branches = schema[keyword]
            return join(shape_of_schema(branch, root, depth=depth + 1) for branch in branches)
    return _typed(schema, root, depth)


def _typed(schema: JsonObject, root: JsonObject, depth: int) -> Shape:
    kinds = kinds_of(schema.get("type"))
    if kinds == KINDS:
        return ANYTHING
    items: Any = schema.get("items")
    prefix = schema.get("prefixItems")
    properties = schema.get("properties")
    required = schema.get("required")
    if isinstance(prefix, list) or items is None:
        items = True
    return Shape(
        kinds=kinds,
        items=None if items is True else shape_of_schema(items, root, depth=depth + 1),
        properties={
            name: shape_of_schema(part, root, depth=depth + 1)
            for name, part in (properties.items() if isinstance(properties, Mapping) else ())
        },
        required=frozenset(required if isinstance(required, list) else ()),
        others=_others(schema, root, depth),
    )


def _others(schema: JsonObject, root: JsonObject, depth: int) -> Shape | None:
    others = schema.get("additionalProperties", True)
    if others is True or "patternProperties" in schema:
        return None
    return shape_of_schema(others, root, depth=depth + 1)


def kinds_of(rule: Any) -> frozenset[Kind]:
    """The kinds that a ``type`` keyword allows; all of them when it is absent or unknown."""
    names = [rule] if isinstance(rule, str) else rule
    if not isinstance(names, list) or not names or not all(n in _KINDS_OF for n in names):
        return KINDS
    return frozenset().union(*(_KINDS_OF[name] for name in names))


def schema_of_shape(shape: Shape, *, depth: int = 0) -> dict[str, Any] | None:
    """A schema that all values of the shape satisfy; None when nothing is known of them."""
    names = _names(shape.kinds)
    if not 0 < len(names) <= _MOST_BRANCHES or depth > _DEEPEST:
        return None
    branches = [_branch(name, shape, depth) for name in names]
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _names(kinds: Iterable[Kind]) -> list[Kind]:
    """In the order of the literal; an integer is a number."""
    found = set(kinds)
    if "number" in found:
        found.discard("integer")
    order: tuple[Kind, ...] = (
        "boolean",
        "integer",
        "number",
        "string",
        "array",
        "object",
        "null",
    )
    return [kind for kind in order if kind in found]


def _branch(kind: Kind, shape: Shape, depth: int) -> dict[str, Any]:
    if kind == "array":
        return {"items": schema_of_shape(shape.item, depth=depth + 1) or {}, "type": "array"}
    if kind == "object" and shape.properties:
        properties = {
            name: schema_of_shape(part, depth=depth + 1) or {}
            for name, part in shape.properties.items()
        }
        required = sorted(shape.required)
        return {"properties": properties, "type": "object"} | (
            {"required": required} if required else {}
        )
    if kind == "object" and shape.others is not None and not shape.others.is_never:
        values = schema_of_shape(shape.others, depth=depth + 1)
        return {"additionalProperties": values or True, "type": "object"}
    return {"type": kind}
