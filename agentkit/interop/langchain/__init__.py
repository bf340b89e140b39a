"""LangChain and LangGraph: our tools as an agent, as a middleware, or as plain tool objects.

Written against langchain 1.4, langchain-core 1.7 and langgraph 1.2; an agent of LangChain is a
graph of LangGraph. The framework is imported when one of the functions below is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.interop.langchain.middleware import library_agent, library_middleware
    from agentkit.interop.langchain.objects import to_langchain

__all__ = ["library_agent", "library_middleware", "to_langchain"]

__getattr__ = lazy_door(
    __name__,
    {
        "library_agent": "agentkit.interop.langchain.middleware",
        "library_middleware": "agentkit.interop.langchain.middleware",
        "to_langchain": "agentkit.interop.langchain.objects",
    },
)
