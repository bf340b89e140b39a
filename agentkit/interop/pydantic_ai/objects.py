"""``to_pydantic_ai``: a library as pydantic-ai's tool objects."""

from __future__ import annotations

from typing import Any

from agentkit.interop.pydantic_ai.framework import require, value_of
from agentkit.interop.toolset import Toolset
from agentkit.library.library import Library
from agentkit.messages import ToolCall
from agentkit.models.wire.names import WireNames
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import copied


def to_pydantic_ai(library: Toolset | Library | str) -> list[Any]:
    """The library's tools as ``pydantic_ai.Tool`` objects, without retrieval and records.

    Calls run through our validation, rules and timeouts; a failure reaches the model as
    ``ToolFailed``. Tools that need approval carry ``requires_approval``.

    Raises:
        MissingExtraError: pydantic-ai is not installed.
    """
    framework = require()
    toolset = Toolset.of(library)
    names = toolset.names
    return [
        _plain_tool(framework, toolset, tool.definition, names, needs_approval=tool.needs_approval)
        for tool in toolset.library
    ]


def _plain_tool(
    framework: Any,
    toolset: Toolset,
    definition: ToolDefinition,
    names: WireNames,
    *,
    needs_approval: bool,
) -> Any:
    async def call(ctx: Any, /, **arguments: Any) -> Any:
        made = ToolCall(call_id=ctx.tool_call_id or "", name=definition.name, arguments=arguments)
        result = await toolset.execute(made, approved=ctx.tool_call_approved)
        return value_of(framework, result, needs_approval=False)

    tool = framework.Tool.from_schema(
        call,
        name=names.encode(definition.name),
        description=definition.text,
        json_schema=copied(definition.parameters_schema),
        takes_ctx=True,
        sequential=definition.signature.effects.writes is True,
    )
    tool.requires_approval = needs_approval
    return tool
