"""Tools of OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentkit.export.renderers.provider_tools import render_provider
from agentkit.export.renderers.rendering import Rendering
from agentkit.export.renderers.strict import OPENAI
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def render_openai_responses(
    tools: Library | Iterable[Tool | ToolDefinition], *, strict: bool = False
) -> Rendering:
    """The field ``tools`` of a response: flat, and each says whether it is strict.

    Responses are strict unless told otherwise, so that ``strict`` is always written.

    Args:
        tools: What to render.
        strict: As for ``render_openai_chat``.
    """
    return render_provider(tools, _wrapped, mode=OPENAI if strict else None)


def _wrapped(function: dict[str, Any], is_strict: bool) -> dict[str, Any]:  # noqa: FBT001 - a form
    return {"type": "function", **function, "strict": is_strict}
