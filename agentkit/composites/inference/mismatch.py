"""Whether values of a shape can ever satisfy a schema; only certain misfits are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentkit.composites.inference.schemas import kinds_of, shape_of_schema
from agentkit.composites.inference.shape import NUMERIC, Kind, Shape
from agentkit.messages import JsonObject
from agentkit.tools.fit import fits
from agentkit.tools.schema import resolve_local

_DEEPEST = 6
_WORDS: Mapping[Kind, str] = {
    "array": "a list",
    "boolean": "True or False",
    "integer": "an integer",
    "null": "None",
    "number": "a number",
    "object": "a dict",
    "string": "text",
}


def mismatch(shape: Shape, schema: Any, root: JsonObject, *, depth: int = 0) -> str:
    """Why no value of the shape satisfies the schema; empty when one may.

    Args:
        shape: The values.
        schema: The schema that they are to satisfy.
        root: The document that the schema's references point into.
        depth: How deep in the document this is.
    """
    if shape.is_never or not isinstance(schema, Mapping) or depth > _DEEPEST:
        return ""
    if shape.constant is not None:
        return _constant_mismatch(shape.constant[0], schema, root)
    if "$ref" in schema:
        target = resolve_local(root, schema["$ref"]) if isinstance(schema["$ref"], str) else None
        return "" if target is None else mismatch(shape, target, root, depth=depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            found = [mismatch(shape, part, root, depth=depth + 1) for part in schema[keyword]]
            return f"it is {words(shape)}" if found and all(found) else ""
    return _kind_mismatch(shape, schema, root) or _inner_mismatch(shape, schema, root, depth)


def _constant_mismatch(value: Any, schema: JsonObject, root: JsonObject) -> str:
    # Python lets True stand for 1, and so do functions that declare a number.
    stand_ins = [value, int(value)] if isinstance(value, bool) else [value]
    if all(fits(item, schema, root=root) is False for item in stand_ins):
        return _unfit(value, schema)
    return ""


def _unfit(value: Any, schema: JsonObject) -> str:
    rules = {key: rule for key, rule in schema.items() if key not in {"default", "description"}}
    return f"{value!r:.80} breaks {rules!s:.160}"


def _kind_mismatch(shape: Shape, schema: JsonObject, root: JsonObject) -> str:
    allowed = kinds_of(schema.get("type"))
    if "enum" in schema or "const" in schema:
        allowed &= shape_of_schema(schema, root).kinds
    if allowed & NUMERIC - {"boolean"}:
        allowed |= NUMERIC
    return "" if shape.kinds & allowed else f"it is {words(shape)}"


def _inner_mismatch(shape: Shape, schema: JsonObject, root: JsonObject, depth: int) -> str:
    if len(shape.kinds) != 1:
        return ""
    (kind,) = shape.kinds
    look = _INSIDE.get(kind)
    return look(shape, schema, root, depth + 1) if look else ""


def _array_mismatch(shape: Shape, schema: JsonObject, root: JsonObject, depth: int) -> str:
    prefix = schema.get("prefixItems")
    rules = prefix if isinstance(prefix, list) else []
    for at, element in enumerate(shape.elements or ()):
        rule = rules[at] if at < len(rules) else schema.get("items", True)
        why = mismatch(element, rule, root, depth=depth)
        if why:
            return f"of item {at}, {why}"
    if shape.elements is not None or rules or shape.may_be_empty:
        return ""
    why = mismatch(shape.item, schema.get("items", True), root, depth=depth)
    return f"of its items, {why}" if why else ""


def _object_mismatch(shape: Shape, schema: JsonObject, root: JsonObject, depth: int) -> str:
    properties = schema.get("properties")
    known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
    for name in schema.get("required", ()):
        if shape.lacks(name):
            return f"it has no key {name!r}"
    for name in sorted(shape.required):
        closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
        if closed and name not in known:
            return f"it has a key {name!r}, which is not among {sorted(known)}"
        why = mismatch(shape.key(name), known.get(name, True), root, depth=depth)
        if why:
            return f"of its key {name!r}, {why}"
    return ""


_INSIDE: Mapping[Kind, Callable[[Shape, JsonObject, JsonObject, int], str]] = {
    "array": _array_mismatch,
    "object": _object_mismatch,
}


def words(shape: Shape) -> str:
    """A shape in words, such as ``text or None``."""
    return " or ".join(_WORDS[kind] for kind in sorted(shape.kinds)) or "nothing"
