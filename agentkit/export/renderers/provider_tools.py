"""What the tools of OpenAI and Anthropic have in common: a name, a text and a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agentkit.export.renderers.parts import lost_parts, renamed
from agentkit.export.renderers.rendering import Loss, Rendering, definitions_of
from agentkit.export.renderers.request_limits import StrictRequest
from agentkit.export.renderers.saying import Notes
from agentkit.export.renderers.strict import StrictMode, strict_schema
from agentkit.library.library import Library
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.request import encode_tool
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

Wrap = Callable[[dict[str, Any], bool], dict[str, Any]]
"""Puts ``{name, description, parameters}`` into a provider's form; with whether it is strict."""


def render_provider(
    tools: Library | Iterable[Tool | ToolDefinition],
    wrap: Wrap,
    *,
    mode: StrictMode | None,
) -> Rendering:
    """Tools as a list in a provider's form.

    The words and the schema are those that our own adapters send (``encode_tool``).

    Args:
        tools: What to render.
        wrap: The provider's form.
        mode: Its strict mode; None to send schemas as they are. Where it bounds what one request
            holds, the first tools are strict, as many as there is place for.
    """
    definitions = definitions_of(tools)
    names = WireNames(definition.name for definition in definitions)
    value: list[dict[str, Any]] = []
    losses: list[Loss] = []
    request = None if mode is None else StrictRequest(mode=mode)
    for definition in definitions:
        name = names.encode(definition.name)
        function: dict[str, Any] = encode_tool(definition, name)["function"]
        losses += [*renamed(definition, name), *lost_parts(definition)]
        schema = None
        if request is not None:
            notes = Notes(tool=definition.name)
            schema = _strict(definition, request, notes)
            losses += notes.losses
        if schema is not None:
            function["parameters"] = schema
        value.append(wrap(function, schema is not None))
    return Rendering(
        value=value,
        losses=tuple(losses),
        names={names.encode(one.name): one.name for one in definitions},
        schemas={names.encode(one.name): one.signature.parameters for one in definitions},
    )


def _strict(
    definition: ToolDefinition, request: StrictRequest, notes: Notes
) -> dict[str, Any] | None:
    """The strict schema of a tool; None where it has none, or the request has no place for it."""
    told = Notes(tool=definition.name)
    schema = strict_schema(definition, request.mode, told)
    full = "" if schema is None else request.takes(schema)
    if full:
        notes.note("strict", "", "dropped", f"sent without strict: {full}")
        return None
    notes.losses += told.losses
    return schema
