"""pydantic-ai: our tools as a capability, as a toolset, or as plain tool objects.

Written against pydantic-ai 2.68. The framework's classes exist once it is imported, which happens
when one of the functions below is called; hence ours are made there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.interop.pydantic_ai.capability import library_capability, library_toolset
    from agentkit.interop.pydantic_ai.objects import to_pydantic_ai

__all__ = ["library_capability", "library_toolset", "to_pydantic_ai"]

__getattr__ = lazy_door(
    __name__,
    {
        "library_capability": "agentkit.interop.pydantic_ai.capability",
        "library_toolset": "agentkit.interop.pydantic_ai.capability",
        "to_pydantic_ai": "agentkit.interop.pydantic_ai.objects",
    },
)
