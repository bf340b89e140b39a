"""Tools in the formats of providers and protocols, and every format by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from agentkit.errors import DefinitionError, UsageError
from agentkit.interop.export.gemini import render_gemini
from agentkit.interop.export.rendering import (
    Loss,
    Notes,
    Rendering,
    Tools,
    definitions_of,
    lost_parts,
    renamed,
    rendering_of,
)
from agentkit.interop.export.strict import (
    ANTHROPIC,
    OPENAI,
    StrictMode,
    StrictRequest,
    strict_schema,
)
from agentkit.interop.export.texts import render_markdown, render_python_stubs
from agentkit.models.chat_completions import encode_tool
from agentkit.models.wire import WireNames
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.mcp_record import tool_record
from agentkit.tools.sources.json_records import record_faults


def render_anthropic(tools: Tools, *, strict: bool = False) -> Rendering:
    """The field ``tools`` of a message.

    Args:
        tools: What to render.
        strict: Ask for ``strict`` where a tool's schema can be said in it. Optional parameters may
            stay optional; bounds of numbers and lengths are told in words. Of one request 20 tools
            are strict at most, the first.

    Example:
        >>> from agentkit.testing import sample_library
        >>> rendering = render_anthropic([sample_library()["bill_split"]])
        >>> list(rendering.value[0])
        ['name', 'description', 'input_schema']
    """
    return render_provider(tools, _as_anthropic, mode=ANTHROPIC if strict else None)


def _as_anthropic(function: dict[str, Any], is_strict: bool) -> dict[str, Any]:  # noqa: FBT001 - a form
    record = {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }
    return record | ({"strict": True} if is_strict else {})


def render_openai_responses(tools: Tools, *, strict: bool = False) -> Rendering:
    """The field ``tools`` of a response: flat, and each says whether it is strict.

    Responses are strict unless told otherwise, so that ``strict`` is always written.

    Args:
        tools: What to render.
        strict: As for ``render_openai_chat``.
    """
    return render_provider(tools, _as_response_tool, mode=OPENAI if strict else None)


def _as_response_tool(function: dict[str, Any], is_strict: bool) -> dict[str, Any]:  # noqa: FBT001 - a form
    return {"type": "function", **function, "strict": is_strict}


def render_openai_chat(tools: Tools, *, strict: bool = False) -> Rendering:
    """The field ``tools`` of a chat completion.

    Args:
        tools: What to render.
        strict: Ask for ``strict`` where a tool's schema can be said in it. Answers then always fit
            the schema; give them to ``Rendering.call``, which takes the nulls out.

    Example:
        >>> from agentkit.testing import sample_library
        >>> rendering = render_openai_chat([sample_library()["bill_split"]], strict=True)
        >>> function = rendering.value[0]["function"]
        >>> function["strict"], function["parameters"]["required"]
        (True, ['amount', 'people', 'tip_percent'])
        >>> rendering.call("bill_split", {"amount": 9, "people": 3, "tip_percent": None})
        ('bill_split', {'amount': 9, 'people': 3})
    """
    return render_provider(tools, _as_function, mode=OPENAI if strict else None)


def _as_function(function: dict[str, Any], is_strict: bool) -> dict[str, Any]:  # noqa: FBT001 - a form
    return {"type": "function", "function": {**function, **({"strict": True} if is_strict else {})}}


Wrap = Callable[[dict[str, Any], bool], dict[str, Any]]
"""Puts ``{name, description, parameters}`` into a provider's form; with whether it is strict."""


def render_provider(
    tools: Tools,
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
    wire = {one.name: names.encode(one.name) for one in definitions}
    return rendering_of(value, definitions, losses, wire)


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


def render_mcp(tools: Tools) -> Rendering:
    """The result of ``tools/list``, in the very form in which ``agentkit serve --mcp`` sends it.

    Names stay as they are: the protocol recommends letters, digits, ``_``, ``-`` and ``.``, and
    demands nothing. Effects become hints, and stand exactly under ``_meta``.

    Args:
        tools: What to render.

    Example:
        >>> from agentkit.testing import sample_library
        >>> rendering = render_mcp([sample_library()["bill_split"]])
        >>> rendering.value["tools"][0]["annotations"]["readOnlyHint"]
        True
    """
    definitions = definitions_of(tools)
    value = {"tools": [tool_record(definition) for definition in definitions]}
    losses = (lost_parts(one, kept=("result", "effects")) for one in definitions)
    return rendering_of(value, definitions, chain.from_iterable(losses))


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def render_json_schema(tools: Tools) -> Rendering:
    """The schema of the arguments of each tool, by its name: whole documents, words included.

    Args:
        tools: What to render.

    Example:
        >>> from agentkit.testing import sample_library
        >>> schema = render_json_schema([sample_library()["bill_split"]]).value["bill_split"]
        >>> schema["title"], schema["type"]
        ('bill_split', 'object')
    """
    definitions = definitions_of(tools)
    value = {
        definition.name: {
            "$schema": DIALECT,
            "title": definition.name,
            "description": definition.text,
            **definition.parameters_schema,
        }
        for definition in definitions
    }
    return rendering_of(value, definitions, chain.from_iterable(map(lost_parts, definitions)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A form in which tools can leave.

    Attributes:
        renderer: Makes it of tools, and ``strict`` where the format has that.
        words: What it is, for help pages.
        is_text: Whether it is text rather than JSON.
        has_strict: Whether the provider has a strict mode.
    """

    renderer: Callable[..., Rendering]
    words: str
    is_text: bool = False
    has_strict: bool = False


FORMATS: Mapping[str, Format] = {
    "openai": Format(
        renderer=render_openai_chat, words="tools of chat completions", has_strict=True
    ),
    "openai-responses": Format(
        renderer=render_openai_responses, words="tools of OpenAI's responses", has_strict=True
    ),
    "anthropic": Format(
        renderer=render_anthropic, words="tools of Anthropic's messages", has_strict=True
    ),
    "gemini": Format(renderer=render_gemini, words="function declarations of Gemini"),
    "mcp": Format(renderer=render_mcp, words="the answer to tools/list of MCP"),
    "json-schema": Format(renderer=render_json_schema, words="a JSON Schema each"),
    "python": Format(renderer=render_python_stubs, words="Python stubs (.pyi)", is_text=True),
    "markdown": Format(renderer=render_markdown, words="a page for people", is_text=True),
}
"""The formats that ``render`` and ``agentkit export --format`` know."""


def render(tools: Tools, format_name: str, *, strict: bool = False) -> Rendering:
    """Tools in one of ``FORMATS``.

    Args:
        tools: What to render.
        format_name: Such as ``openai``.
        strict: Ask for the provider's strict mode.

    Raises:
        UsageError: There is no such format, or it has no strict mode.
        DefinitionError: The schema of a tool is broken; the message names the tool.

    Example:
        >>> from agentkit.testing import sample_library
        >>> rendering = render(sample_library(), "openai")
        >>> len(rendering.value), rendering.counts()["examples"] > 0
        (13, True)
    """
    found = FORMATS.get(format_name)
    if found is None:
        raise UsageError(f"there is no format {format_name!r}; use one of {', '.join(FORMATS)}")
    if strict and not found.has_strict:
        having = ", ".join(name for name, one in FORMATS.items() if one.has_strict)
        raise UsageError(f"{format_name} has no strict mode; these have one: {having}")
    definitions = definitions_of(tools)
    try:
        return found.renderer(definitions, strict=True) if strict else found.renderer(definitions)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        for definition in definitions:  # a schema that no renderer expects
            if faults := record_faults(definition.to_json()):
                raise DefinitionError(
                    f"the tool {definition.name!r} can not be rendered as {format_name}, because "
                    f"its definition is broken: {faults[0]}; correct or remove it",
                    tool_name=definition.name,
                ) from error
        raise
