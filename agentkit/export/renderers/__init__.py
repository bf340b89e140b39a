"""Tools in the formats of others, with a report of what these can not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.export.renderers.formats import FORMATS, Format, render
    from agentkit.export.renderers.gemini import gemini_names, render_gemini
    from agentkit.export.renderers.markdown_pages import render_markdown
    from agentkit.export.renderers.providers import (
        render_anthropic,
        render_json_schema,
        render_mcp,
        render_openai_chat,
        render_openai_responses,
    )
    from agentkit.export.renderers.python_stubs import render_python_stubs
    from agentkit.export.renderers.rendering import Loss, Renderer, Rendering

_HERE = "agentkit.export.renderers"
_MODULES = {
    "FORMATS": f"{_HERE}.formats",
    "Format": f"{_HERE}.formats",
    "Loss": f"{_HERE}.rendering",
    "Renderer": f"{_HERE}.rendering",
    "Rendering": f"{_HERE}.rendering",
    "gemini_names": f"{_HERE}.gemini",
    "render": f"{_HERE}.formats",
    "render_anthropic": f"{_HERE}.providers",
    "render_gemini": f"{_HERE}.gemini",
    "render_json_schema": f"{_HERE}.providers",
    "render_markdown": f"{_HERE}.markdown_pages",
    "render_mcp": f"{_HERE}.providers",
    "render_openai_chat": f"{_HERE}.providers",
    "render_openai_responses": f"{_HERE}.providers",
    "render_python_stubs": f"{_HERE}.python_stubs",
}

__all__ = [
    "FORMATS",
    "Format",
    "Loss",
    "Renderer",
    "Rendering",
    "gemini_names",
    "render",
    "render_anthropic",
    "render_gemini",
    "render_json_schema",
    "render_markdown",
    "render_mcp",
    "render_openai_chat",
    "render_openai_responses",
    "render_python_stubs",
]

__getattr__ = lazy_door(__name__, _MODULES)
