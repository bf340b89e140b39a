"""Programs as JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agentkit.composites import ir
from agentkit.composites.checks import check_program
from agentkit.composites.decoding import EXACT_INTEGER, FIELD_OF, Decoder, malformed, shown
from agentkit.composites.faults import refusal
from agentkit.composites.limits import CompositeLimits
from agentkit.messages import JsonObject
from agentkit.tools.canonical import digest
from agentkit.tools.tool import Tool

FORMAT_VERSION = 1
"""Version of the JSON form of a program."""

_KINDS = (*ir.EXPRESSIONS, *ir.STATEMENTS, ir.Argument, ir.Parameter, ir.Program)
_JSON_NAMES = {(kind, field): name for (kind, name), field in FIELD_OF.items()}
_FIELDS: Mapping[type, tuple[tuple[str, str], ...]] = {
    kind: tuple((f.name, _JSON_NAMES.get((kind, f.name), f.name)) for f in fields(kind))
    for kind in _KINDS
}
"""For each kind of node its fields, with their names in JSON."""


def program_to_json(program: ir.Program) -> dict[str, Any]:
    """A program as one JSON object, with its format version."""
    return {"format": FORMAT_VERSION, **_encoded(program)}


def program_from_json(
    record: JsonObject,
    *,
    tools: Mapping[str, Tool] | None = None,
    name: str = "",
    limits: CompositeLimits | None = None,
) -> ir.Program:
    """The inverse of ``program_to_json``, for data of any origin.

    The static rules of the language hold for it as they hold for a text.

    Args:
        record: What ``program_to_json`` made.
        tools: The tools that it may call, by their name in the library; with None, the rules that
            need their signatures and effects are left out.
        name: The composite's name, for messages; it may not call itself.
        limits: Caps on the program.

    Raises:
        CompositeError: The data is no program (``malformed_program``, with the path in the JSON),
            was written by a newer agentkit, or breaks a rule of the language.

    Example:
        >>> from agentkit.composites.parser import parse
        >>> program = parse("def twice(x): return 2 * x", {}).program
        >>> program_from_json(program_to_json(program)) == program
        True
    """
    limits = limits or CompositeLimits()
    body = _without_format(record, name)
    try:
        program: ir.Program = Decoder(limits, name).node(body, None, {"Program": ir.Program})
    except RecursionError as error:
        message = "the program is nested too deeply for this process"
        raise malformed(message, code="too_large", tool_name=name) from error
    problems = check_program(program, tools, name=name, limits=limits)
    if problems:
        raise refusal(name, problems)
    return program


def program_digest(program: ir.Program) -> str:
    """SHA-256 over the canonical JSON of a program."""
    return digest(program_to_json(program))


def _without_format(record: object, name: str) -> JsonObject:
    if not isinstance(record, Mapping):
        raise malformed(f"$: expected an object, got {shown(record)}", tool_name=name)
    version = record.get("format")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        message = f"$.format: expected an integer from 1, got {shown(version)}"
        raise malformed(message, tool_name=name)
    if version > FORMAT_VERSION:
        raise malformed(
            f"$.format: the program has format {shown(version)}, this agentkit reads up to "
            f"{FORMAT_VERSION}",
            advice="Upgrade agentkit-evolve.",
            tool_name=name,
        )
    return {key: value for key, value in record.items() if key != "format"}


def _encoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, ir.Constant):
        return {"kind": "Constant", **_scalar(value.value)}
    node = type(value)
    if node not in _FIELDS:
        return value
    record: dict[str, Any] = {"kind": node.__name__}
    for field, name in _FIELDS[node]:
        record[name] = _encoded(getattr(value, field))
    return record


def _scalar(value: ir.Scalar) -> JsonObject:
    if isinstance(value, float):
        return {"float": repr(value)}  # 1.0 and 1 are one number in JSON, two in the language
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT_INTEGER:
        return {"integer": str(value)}
    return {"value": value}
