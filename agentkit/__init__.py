"""agentkit: an agent runtime whose tool definitions are living, versioned data.

The public nouns are ``Tool``, ``Library`` and ``Agent``. Importing this package loads the
standard library alone; each name loads its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door
from agentkit._version import __version__

if TYPE_CHECKING:
    from agentkit.agent.agent import Agent
    from agentkit.agent.types import RunResult
    from agentkit.episodes.episode import Episode
    from agentkit.errors import AgentKitError, ModelRetry, ToolFailed
    from agentkit.library.library import Library
    from agentkit.library.opening import open_store
    from agentkit.models.resolve import resolve_model
    from agentkit.tools.composite.decorator import composite
    from agentkit.tools.decorator import tool
    from agentkit.tools.definition import Effects, ToolDefinition
    from agentkit.tools.tool import Tool

__all__ = [
    "Agent",
    "AgentKitError",
    "Effects",
    "Episode",
    "Library",
    "ModelRetry",
    "RunResult",
    "Tool",
    "ToolDefinition",
    "ToolFailed",
    "__version__",
    "composite",
    "open_store",
    "resolve_model",
    "tool",
]

_MODULES = {
    "Agent": "agentkit.agent.agent",
    "AgentKitError": "agentkit.errors",
    "Effects": "agentkit.tools.definition",
    "Episode": "agentkit.episodes.episode",
    "Library": "agentkit.library.library",
    "ModelRetry": "agentkit.errors",
    "RunResult": "agentkit.agent.types",
    "Tool": "agentkit.tools.tool",
    "ToolDefinition": "agentkit.tools.definition",
    "ToolFailed": "agentkit.errors",
    "composite": "agentkit.tools.composite.decorator",
    "open_store": "agentkit.library.opening",
    "resolve_model": "agentkit.models.resolve",
    "tool": "agentkit.tools.decorator",
}


__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
