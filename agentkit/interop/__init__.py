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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
