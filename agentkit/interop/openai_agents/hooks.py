# mypy: disallow-subclassing-any=False
"""Hooks that tell a run of answers, and hand everything on to the hooks of the caller."""

from __future__ import annotations

from typing import Any

from agentkit.interop.openai_agents.run import Run

_HOOKS = ("on_agent_start", "on_agent_end", "on_handoff", "on_tool_start")


def hooks_class(framework: Any) -> Any:
    """``Hooks``, a subclass of the framework's."""

    class Hooks(framework.RunHooks):
        """Records what the model answers; everything else goes to the caller's hooks."""

        def __init__(self, run: Run, others: Any) -> None:
            self._run, self._others = run, others
            for name in _HOOKS if others is not None else ():
                setattr(self, name, getattr(others, name))

        async def on_llm_start(self, *args: Any) -> None:
            self._run.ours.asks()
            if self._others is not None:
                await self._others.on_llm_start(*args)

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            self._run.answered(response)
            if self._others is not None:
                await self._others.on_llm_end(context, agent, response)

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            self._run.ours.observed(getattr(context, "tool_call_id", ""), result)
            if self._others is not None:
                await self._others.on_tool_end(context, agent, tool, result)

    return Hooks
