"""Tools of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentkit.export.renderers.provider_tools import render_provider
from agentkit.export.renderers.rendering import Rendering
from agentkit.export.renderers.strict import ANTHROPIC
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def render_anthropic(
    tools: Library | Iterable[Tool | ToolDefinition], *, strict: bool = False
) -> Rendering:
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
    return render_provider(tools, _wrapped, mode=ANTHROPIC if strict else None)


def _wrapped(function: dict[str, Any], is_strict: bool) -> dict[str, Any]:  # noqa: FBT001 - a form
    record = {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }
    return record | ({"strict": True} if is_strict else {})
