"""pydantic-ai: our tools as a capability, as a toolset, or as plain tool objects.

Written against pydantic-ai 2.68. The framework's classes exist once it is imported, which happens
when one of the functions below is called; hence ours are made there.
"""

from __future__ import annotations

from agentkit.interop.pydantic_ai.capability import library_capability, library_toolset
from agentkit.interop.pydantic_ai.objects import to_pydantic_ai

__all__ = ["library_capability", "library_toolset", "to_pydantic_ai"]
