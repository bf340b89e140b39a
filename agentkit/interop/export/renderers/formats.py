"""Every format by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentkit.errors import DefinitionError, UsageError
from agentkit.interop.export.renderers.gemini import render_gemini
from agentkit.interop.export.renderers.markdown_pages import render_markdown
from agentkit.interop.export.renderers.providers import (
    render_anthropic,
    render_json_schema,
    render_mcp,
    render_openai_chat,
    render_openai_responses,
)
from agentkit.interop.export.renderers.python_stubs import render_python_stubs
from agentkit.interop.export.renderers.rendering import Renderer, Rendering, definitions_of
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import record_faults
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A form in which tools can leave.

    Attributes:
        renderer: Makes it.
        words: What it is, for help pages.
        is_text: Whether it is text rather than JSON.
        has_strict: Whether the provider has a strict mode.
    """

    renderer: Renderer
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


def render(
    tools: Library | Iterable[Tool | ToolDefinition], format_name: str, *, strict: bool = False
) -> Rendering:
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
