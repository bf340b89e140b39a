"""``to_langchain``: a library as LangChain's tool objects."""

from __future__ import annotations

from typing import Any

from agentkit.errors import UsageError
from agentkit.interop.langchain.framework import missing, waited
from agentkit.interop.toolset import Toolset
from agentkit.library.library import Library
from agentkit.messages import ToolCall
from agentkit.models.wire.names import WireNames
from agentkit.tools.schema import copied
from agentkit.tools.tool import Tool

_TAKEN_BY_LANGCHAIN = frozenset({"config", "run_manager"})


def to_langchain(library: Toolset | Library | str) -> list[Any]:
    """The library's tools as ``StructuredTool`` objects, without retrieval and records.

    Calls run through our validation, rules and timeouts; a failure becomes a tool message with the
    status ``error``. Calls that need approval are refused, unless ``Toolset(approve=...)`` asks.

    Raises:
        MissingExtraError: langchain-core is not installed.
        UsageError: A parameter has a name that these objects can not pass.
    """
    try:
        from langchain_core.tools import StructuredTool
    except ImportError as error:
        raise missing("langchain_core", "langchain-core") from error
    toolset = Toolset.of(library)
    names = toolset.names
    return [_structured_tool(StructuredTool, toolset, tool, names) for tool in toolset.library]


def _structured_tool(kind: Any, toolset: Toolset, tool: Tool, names: WireNames) -> Any:
    from langchain_core.tools import ToolException

    taken = sorted(_TAKEN_BY_LANGCHAIN & tool.definition.signature.properties.keys())
    if taken:
        raise UsageError(
            f"the tool {tool.name!r} has a parameter {taken[0]!r}, a name that LangChain's tool "
            "objects take for themselves; use library_agent or library_middleware, which pass it"
        )

    async def acall(**arguments: Any) -> str:
        call = ToolCall(call_id="", name=tool.name, arguments=arguments)
        result = await toolset.execute(call)
        if result.status != "ok":
            raise ToolException(result.text)
        return result.text

    def call(**arguments: Any) -> str:
        return waited(acall(**arguments))

    return kind(
        name=names.encode(tool.name),
        description=tool.definition.text,
        args_schema=copied(tool.definition.parameters_schema),
        func=call,
        coroutine=acall,
        handle_tool_error=True,
    )
