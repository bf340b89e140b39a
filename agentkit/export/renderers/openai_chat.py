"""Tools of OpenAI's chat completions, which most servers take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentkit.export.renderers.provider_tools import render_provider
from agentkit.export.renderers.rendering import Rendering
from agentkit.export.renderers.strict import OPENAI
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def render_openai_chat(
    tools: Library | Iterable[Tool | ToolDefinition], *, strict: bool = False
) -> Rendering:
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
    return render_provider(tools, _wrapped, mode=OPENAI if strict else None)


def _wrapped(function: dict[str, Any], is_strict: bool) -> dict[str, Any]:  # noqa: FBT001 - a form
    return {"type": "function", "function": {**function, **({"strict": True} if is_strict else {})}}
