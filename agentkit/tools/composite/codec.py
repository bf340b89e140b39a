"""Programs as JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.canonical import digest
from agentkit.tools.composite import ir

FORMAT_VERSION = 1
"""Version of the JSON form of a program."""

_EXACT_INTEGER = 2**53
"""Canonical JSON (RFC 8785) holds integers exactly up to here."""

_KINDS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (*ir.EXPRESSIONS, *ir.STATEMENTS, ir.Argument, ir.Parameter, ir.Program)
}


def program_to_json(program: ir.Program) -> dict[str, Any]:
    """A program as one JSON object, with its format version."""
    return {"format": FORMAT_VERSION, **_encoded(program)}


def program_digest(program: ir.Program) -> str:
    """SHA-256 over the canonical JSON of a program."""
    return digest(program_to_json(program))


def _encoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, ir.Constant):
        return {"kind": "Constant", **_scalar(value.value)}
    if type(value) in _KINDS.values():
        record = {field.name: _encoded(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **record}
    return value


def _scalar(value: ir.Scalar) -> JsonObject:
    if isinstance(value, float):
        return {"float": repr(value)}  # 1.0 and 1 are one number in JSON, two in the language
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT_INTEGER:
        return {"integer": str(value)}
    return {"value": value}
