"""``to_openai_agents``: a library as openai-agents' tool objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agentkit.interop.openai_agents.framework import require
from agentkit.interop.toolset import Toolset
from agentkit.library.library import Library
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.response import decode_call
from agentkit.tools.schema import copied
from agentkit.tools.tool import Tool

Invoke = Callable[[Any, str], Awaitable[str]]
"""What the framework calls: with its context and the arguments as text, for the model's words."""


def to_openai_agents(library: Toolset | Library | str) -> list[Any]:
    """The library's tools as ``agents.FunctionTool`` objects, without retrieval and records.

    Calls run through our validation, rules and timeouts; a failure reaches the model as the text of
    the result. Tools that need approval carry ``needs_approval``.

    Raises:
        MissingExtraError: openai-agents is not installed.
    """
    require()
    toolset = Toolset.of(library)
    names = WireNames(toolset.library.tools)
    return [
        function_tool(toolset, tool, names, unrecorded(toolset, tool, names))
        for tool in toolset.library
    ]


def asks(toolset: Toolset, tool: Tool) -> bool:
    """Whether the framework has to ask a person, and runs the call once one has said yes."""
    return tool.needs_approval and not toolset.approves


def unrecorded(toolset: Toolset, tool: Tool, names: WireNames) -> Invoke:
    """Runs a call outside of any run."""

    async def invoke(context: Any, arguments: str) -> str:
        call = decode_call(context.tool_call_id, names.encode(tool.name), arguments, names)
        return (await toolset.execute(call, approved=asks(toolset, tool))).text

    return invoke


def function_tool(toolset: Toolset, tool: Tool, names: WireNames, invoke: Invoke) -> Any:
    """The framework's object of a tool."""
    return require().FunctionTool(
        name=names.encode(tool.name),
        description=tool.definition.text,
        params_json_schema=copied(tool.definition.parameters_schema),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # the schema as the library has it; strict mode would rewrite it
        needs_approval=asks(toolset, tool),
    )
