"""What an MCP server answers to ``tools/list``."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.export.renderers.parts import lost_parts
from agentkit.export.renderers.rendering import Rendering, definitions_of
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.mcp_record import tool_record
from agentkit.tools.tool import Tool


def render_mcp(tools: Library | Iterable[Tool | ToolDefinition]) -> Rendering:
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
    return Rendering(
        value={"tools": [tool_record(definition) for definition in definitions]},
        losses=tuple(
            loss
            for definition in definitions
            for loss in lost_parts(definition, kept=("result", "effects"))
        ),
        names={definition.name: definition.name for definition in definitions},
        schemas={one.name: one.signature.parameters for one in definitions},
    )
