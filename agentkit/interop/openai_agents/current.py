"""The run of the current task.

A tool finds it here and not in itself, because the framework keeps tools in the state of an
interrupted run, and that state is gone on with in another one.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun


class Current(Protocol):
    """What a tool asks of the run that it is called in.

    Attributes:
        toolset: Where the run came from.
        ours: Chooses, executes, records.
    """

    toolset: Toolset
    ours: ToolsetRun

    def offer(self, agent: Any) -> None:
        """Give an agent the tools that were offered since it was made."""
        ...


CURRENT: ContextVar[Current | None] = ContextVar("agentkit_openai_agents_run", default=None)
