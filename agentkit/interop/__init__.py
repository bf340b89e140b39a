"""Our tools in other frameworks: their loop and their model, our retrieval, execution and records.

``Toolset`` is what an application hands out, ``ToolsetRun`` one run of another's loop over it.
The adapters import their framework when they are called, never before:

* ``agentkit.interop.pydantic_ai``: a capability, or a toolset alone;
* ``agentkit.interop.openai_agents``: a runner;
* ``agentkit.interop.langchain``: an agent or a middleware of LangChain, whose agents are graphs of
  LangGraph.

Who wants the tool objects alone, without retrieval and records, renders a library with
``to_pydantic_ai``, ``to_openai_agents`` or ``to_langchain``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun

if TYPE_CHECKING:
    from agentkit.interop.langchain import library_agent, library_middleware, to_langchain
    from agentkit.interop.openai_agents import LibraryRunner, to_openai_agents
    from agentkit.interop.pydantic_ai import library_capability, library_toolset, to_pydantic_ai

__all__ = [
    "LibraryRunner",
    "Toolset",
    "ToolsetRun",
    "library_agent",
    "library_capability",
    "library_middleware",
    "library_toolset",
    "to_langchain",
    "to_openai_agents",
    "to_pydantic_ai",
]

__getattr__ = lazy_door(
    __name__,
    {
        "LibraryRunner": "agentkit.interop.openai_agents",
        "library_agent": "agentkit.interop.langchain",
        "library_capability": "agentkit.interop.pydantic_ai",
        "library_middleware": "agentkit.interop.langchain",
        "library_toolset": "agentkit.interop.pydantic_ai",
        "to_langchain": "agentkit.interop.langchain",
        "to_openai_agents": "agentkit.interop.openai_agents",
        "to_pydantic_ai": "agentkit.interop.pydantic_ai",
    },
)
