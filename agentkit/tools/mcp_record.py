"""A definition as MCP lists it, and what only our own servers say of it.

The protocol says less than a definition does: what a tool writes but does not destroy has no hint,
and clients of older versions take only objects for results. So what would be lost goes into
``_meta`` under names of ours, which other clients leave alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from agentkit.messages import JsonObject
from agentkit.tools.definition import EffectName, Effects, ToolDefinition
from agentkit.tools.schema import with_references

EFFECTS_KEY = "agentkit.dev/effects"
"""Key in a tool's ``_meta``: the effects as we declare them."""

WRAPPED_KEY = "agentkit.dev/wrapped"
"""Key in a tool's ``_meta``: its result is the field ``result`` of the object sent."""

RESULT_FIELD = "result"
"""Under which a value that is not an object is sent, as the official server library does it."""

_SHARED: tuple[str, ...] = ("$defs", "definitions")
_INNER = f"#/properties/{RESULT_FIELD}"


def tool_record(definition: ToolDefinition, *, name: str | None = None) -> dict[str, Any]:
    """A definition as an entry of ``tools/list``.

    Args:
        definition: What the library says.
        name: What to list it as; None takes the definition's own.

    Example:
        >>> record = tool_record(
        ...     ToolDefinition.from_schema("now", "The time.", {"type": "object", "properties": {}})
        ... )
        >>> record["name"], record["inputSchema"]
        ('now', {'type': 'object', 'properties': {}})
    """
    signature = definition.signature
    record: dict[str, Any] = {
        "name": name or definition.name,
        "description": definition.text,
        "inputSchema": definition.parameters_schema,
    }
    meta: dict[str, Any] = {}
    if signature.result is not None:
        wrapped = not describes_object(signature.result)
        record["outputSchema"] = wrapped_schema(signature.result) if wrapped else signature.result
        meta |= {WRAPPED_KEY: True} if wrapped else {}
    if hints := hints_of(signature.effects):
        record["annotations"] = hints
    if effects := signature.effects.to_json():
        meta[EFFECTS_KEY] = effects
    return record | ({"_meta": meta} if meta else {})


def hints_of(effects: Effects) -> dict[str, bool]:
    """Declared effects in the words of the protocol; what is not declared is left out."""
    hints = {
        "readOnlyHint": None if effects.writes is None else effects.is_read_only,
        "destructiveHint": effects.destructive,
        "idempotentHint": effects.idempotent,
        "openWorldHint": effects.open_world,
    }
    return {name: hint for name, hint in hints.items() if hint is not None}


def describes_object(schema: JsonObject) -> bool:
    """Whether every value of a schema is an object, as all versions of the protocol take it."""
    return schema.get("type") == "object"


def wrapped_schema(schema: JsonObject) -> dict[str, Any]:
    """The schema of an object that holds a value in the field ``result``.

    Definitions that the schema refers to move to the new root, where references look for them;
    references to the old root, as recursive schemas have them, follow it to its new place.
    """
    inner = with_references(schema, _down)
    shared = {key: inner.pop(key) for key in _SHARED if key in inner}
    return {
        "type": "object",
        "properties": {RESULT_FIELD: inner},
        "required": [RESULT_FIELD],
        **shared,
    }


def unwrapped_schema(schema: JsonObject) -> dict[str, Any]:
    """The inverse of ``wrapped_schema``."""
    inner = schema["properties"][RESULT_FIELD]
    shared = {key: schema[key] for key in _SHARED if key in schema}
    moved: dict[str, Any] = with_references({**inner, **shared}, _up)
    return moved


def _down(reference: str) -> str:
    """A reference to what is about to become the field of an object."""
    if reference != "#" and not reference.startswith("#/"):
        return reference
    is_shared = reference.removeprefix("#/").partition("/")[0] in _SHARED
    return reference if is_shared else f"{_INNER}{reference[1:]}"


def _up(reference: str) -> str:
    """The inverse of ``_down``."""
    is_inner = reference == _INNER or reference.startswith(f"{_INNER}/")
    return f"#{reference.removeprefix(_INNER)}" if is_inner else reference


def is_wrapped(record: Mapping[str, Any]) -> bool:
    """Whether the result of a listed tool is sent inside an object, as ``tool_record`` says."""
    meta, schema = record.get("_meta"), record.get("outputSchema")
    if not isinstance(meta, Mapping) or meta.get(WRAPPED_KEY) is not True:
        return False
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    return isinstance(fields, Mapping) and isinstance(fields.get(RESULT_FIELD), Mapping)


_EFFECTS = frozenset(get_args(EffectName))


def exact_effects(record: JsonObject) -> Effects | None:
    """The effects that an entry written by us declares; None where it declares none, or wrongly.

    Example:
        >>> exact_effects({"_meta": {EFFECTS_KEY: {"reads": True, "writes": True}}})
        Effects(reads=True, writes=True, destructive=None, idempotent=None, open_world=None)
    """
    meta = record.get("_meta")
    effects = meta.get(EFFECTS_KEY) if isinstance(meta, Mapping) else None
    if not isinstance(effects, Mapping) or not effects.keys() <= _EFFECTS:
        return None
    return (
        Effects(**effects) if all(isinstance(value, bool) for value in effects.values()) else None
    )
