"""Tools in the formats of providers and protocols."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentkit.errors import DefinitionError, UsageError
from agentkit.library.library import Library
from agentkit.models.chat_completions import encode_tool
from agentkit.models.wire import LONGEST_NAME, WireNames
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import record_faults, tool_record
from agentkit.tools.tool import Tool

Tools: TypeAlias = "Library | list[Tool | ToolDefinition] | tuple[Tool | ToolDefinition, ...]"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_BEGINS = re.compile(r"[a-zA-Z_]")


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """Tools as a format has them.

    Attributes:
        value: JSON data.
        names: The tool's name in the library, by the name that it has in ``value``.
    """

    value: Any
    names: Mapping[str, str] = field(default_factory=dict)


Entry = Callable[[dict[str, Any], ToolDefinition], dict[str, Any]]
"""Puts ``{name, description, parameters}`` into the form of a provider."""


def _openai(function: dict[str, Any], _: ToolDefinition) -> dict[str, Any]:
    return {"type": "function", "function": function}


def _openai_responses(function: dict[str, Any], _: ToolDefinition) -> dict[str, Any]:
    return {"type": "function", **function, "strict": False}  # strict unless told otherwise


def _anthropic(function: dict[str, Any], _: ToolDefinition) -> dict[str, Any]:
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }


def _gemini(function: dict[str, Any], definition: ToolDefinition) -> dict[str, Any]:
    """The service takes JSON Schema, and wants none of a tool without parameters."""
    record = {"name": function["name"], "description": function["description"]}
    if function["parameters"].get("properties"):
        record["parametersJsonSchema"] = function["parameters"]
    if definition.signature.result:
        record["responseJsonSchema"] = definition.signature.result
    return record


def _mcp(_: dict[str, Any], definition: ToolDefinition) -> dict[str, Any]:
    """The form that ``agentkit serve --mcp`` sends; effects become hints."""
    return tool_record(definition)


def _json_schema(function: dict[str, Any], definition: ToolDefinition) -> dict[str, Any]:
    head = {"$schema": _DIALECT, "title": definition.name, "description": definition.text}
    return {**head, **function["parameters"]}


_ENTRIES: Mapping[str, Entry] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "mcp": _mcp,
    "json-schema": _json_schema,
}
FORMATS = tuple(_ENTRIES)
"""The formats that ``render`` and ``agentkit export --format`` know."""


def render(tools: Tools, format_name: str) -> Rendering:
    """Tools in one of ``FORMATS``, with the words and schemas that our own adapters send.

    Args:
        tools: What to render.
        format_name: Such as ``openai``.

    Raises:
        UsageError: There is no such format.
        DefinitionError: The schema of a tool is broken; the message names the tool.

    Example:
        >>> from agentkit.testing import sample_library
        >>> rendering = render([sample_library()["bill_split"]], "anthropic")
        >>> list(rendering.value[0])
        ['name', 'description', 'input_schema']
    """
    if format_name not in FORMATS:
        raise UsageError(f"there is no format {format_name!r}; use one of {', '.join(FORMATS)}")
    definitions = (tools if isinstance(tools, Library) else Library(tools)).definitions
    names = _names(definitions, format_name)
    entries: list[dict[str, Any]] = []
    for definition in definitions:
        name = names[definition.name]
        try:
            function: dict[str, Any] = encode_tool(definition, name)["function"]
            entries.append(_ENTRIES[format_name](function, definition))
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            faults = record_faults(definition.to_json())  # a schema that nobody expects
            if not faults:
                raise
            raise DefinitionError(
                f"the tool {definition.name!r} cannot be rendered as {format_name}, because "
                f"its definition is broken: {faults[0]}; correct or remove it",
                tool_name=definition.name,
            ) from error
    value: Any = entries
    if format_name == "mcp":
        value = {"tools": entries}
    elif format_name == "json-schema":
        value = {one.name: entry for one, entry in zip(definitions, entries, strict=True)}
    by_wire_name = {wire: own for own, wire in names.items()}
    return Rendering(value=value, names=by_wire_name)


def _names(definitions: tuple[ToolDefinition, ...], format_name: str) -> dict[str, str]:
    """The names that a format has, by the library's."""
    if format_name in {"mcp", "json-schema"}:
        return {one.name: one.name for one in definitions}
    accepted = WireNames(one.name for one in definitions)
    names = {one.name: accepted.encode(one.name) for one in definitions}
    if format_name != "gemini":
        return names
    taken = {wire for wire in names.values() if _BEGINS.match(wire)}
    for name, wire in sorted(names.items()):
        if _BEGINS.match(wire):
            continue
        begun, number = f"_{wire}"[:LONGEST_NAME], 2  # Gemini's begin with a letter or `_`
        while begun in taken:
            begun, number = f"_{number}_{wire}"[:LONGEST_NAME], number + 1
        taken.add(begun)
        names[name] = begun
    return names
