"""``to_openai_agents``: a library as openai-agents' tool objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from agentkit.interop.openai_agents.current import CURRENT
from agentkit.interop.openai_agents.framework import require
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun
from agentkit.library.library import Library
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.response import decode_call
from agentkit.tools.schema import copied
from agentkit.tools.tool import Tool


def to_openai_agents(library: Toolset | Library | str) -> list[Any]:
    """The library's tools as ``agents.FunctionTool`` objects, without retrieval and records.

    Calls run through our validation, rules and timeouts; a failure reaches the model as the text of
    the result. Tools that need approval carry ``needs_approval``. In an agent that a
    ``LibraryRunner`` runs, or one that is handed off to there, they are recorded with its run.

    Raises:
        MissingExtraError: openai-agents is not installed.
    """
    require()
    toolset = Toolset.of(library)
    names = toolset.names
    return [function_tool(toolset, tool, names, grows=False) for tool in toolset.library]


class FunctionTools:
    """The framework's objects of a toolset's tools, made once for each version of its library.

    They are the same for all runs, as the framework's own are: which run a call belongs to is found
    when it is made.

    Args:
        toolset: Runs the calls.
    """

    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset
        self._made: WeakKeyDictionary[Library, dict[str, Any]] = WeakKeyDictionary()

    def of(self, tool: Tool, run: ToolsetRun) -> Any:
        """The object of a tool that is offered in a run, which may be the run's own."""
        made = self._made.setdefault(run.library, {})
        if run.library.get(tool.name) is not tool:
            return function_tool(self._toolset, tool, run.names, grows=True)
        if tool.name not in made:
            made[tool.name] = function_tool(self._toolset, tool, run.names, grows=True)
        return made[tool.name]


def function_tool(toolset: Toolset, tool: Tool, names: WireNames, *, grows: bool) -> Any:
    """The framework's object of a tool.

    Args:
        toolset: Runs the calls; inside of a run of its own that run does, which records them.
        tool: The tool.
        names: Its library's names, as providers accept them.
        grows: Whether the agent that has it gets the tools that its model searches for.
    """
    asks = tool.needs_approval and not toolset.approves

    async def invoke(context: Any, arguments: str) -> str:
        call = decode_call(context.tool_call_id, names.encode(tool.name), arguments, names)
        call = replace(call, call_id=context.tool_call_id)
        run = CURRENT.get()
        if run is not None and run.toolset is toolset:
            run.ours.offer((tool.name,))  # a run that goes on has the tools that it began with
            result = await run.ours.call(call, approval=True if asks else None)
            if grows:
                run.offer(context.agent)
            return result.text
        result = await toolset.execute(call, approved=asks)
        if run is not None:
            run.ours.ran(result)
        return result.text

    return require().FunctionTool(
        name=names.encode(tool.name),
        description=tool.definition.text,
        params_json_schema=copied(tool.definition.parameters_schema),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # the schema as the library has it; strict mode would rewrite it
        needs_approval=asks,  # the framework runs such a call once a person has said yes
    )
