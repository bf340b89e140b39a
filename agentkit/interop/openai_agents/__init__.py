"""openai-agents: a runner that gives an agent our tools, or plain tool objects.

Written against openai-agents 0.24. The framework is imported when one of the names below is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.interop.openai_agents.objects import to_openai_agents
    from agentkit.interop.openai_agents.runner import LibraryRunner

__all__ = ["LibraryRunner", "to_openai_agents"]

__getattr__ = lazy_door(
    __name__,
    {
        "LibraryRunner": "agentkit.interop.openai_agents.runner",
        "to_openai_agents": "agentkit.interop.openai_agents.objects",
    },
)
