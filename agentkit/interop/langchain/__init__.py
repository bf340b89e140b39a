"""LangChain and LangGraph: our tools as an agent, as a middleware, or as plain tool objects.

Written against langchain 1.4, langchain-core 1.7 and langgraph 1.2; an agent of LangChain is a
graph of LangGraph. The framework is imported when one of the functions below is called.
"""

from __future__ import annotations

from agentkit.interop.langchain.middleware import library_agent, library_middleware
from agentkit.interop.langchain.objects import to_langchain

__all__ = ["library_agent", "library_middleware", "to_langchain"]
