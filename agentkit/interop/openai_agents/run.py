"""One run: what the framework is given, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from agentkit.episodes import Episode, StopReason
from agentkit.interop.openai_agents.messages import as_dict, text_of, usage_of
from agentkit.interop.openai_agents.objects import asks, function_tool, unrecorded
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun
from agentkit.messages import AssistantMessage, ResultStatus
from agentkit.models.wire.names import WireNames
from agentkit.tools.tool import Tool


@dataclass(kw_only=True)
class Run:
    """One run.

    Attributes:
        toolset: Where it came from.
        ours: Chooses, executes, records.
        agent: The clone that runs.
        options: What ``Runner.run`` gets.
    """

    toolset: Toolset
    ours: ToolsetRun
    agent: Any
    options: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Inside, the framework's tasks find this run."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def offer(self, agent: Any) -> None:
        """Give the agent, which no other run has, the tools that were offered since."""
        known = {tool.name for tool in agent.tools}
        for definition in self.ours.offered:
            tool = self.ours.tool(definition.name)
            if tool is not None and self.ours.names.encode(tool.name) not in known:
                agent.tools.append(_recorded(self.toolset, tool, self.ours.names))

    def go_on(self, interruptions: list[Any]) -> None:
        """Begin with the calls that waited for a person."""
        items = [one.raw_item for one in interruptions]
        calls = (self.ours.as_call(one.call_id, one.name, one.arguments) for one in items)
        self.ours.answered(AssistantMessage(tool_calls=tuple(calls)), seconds=0.0)

    def answered(self, response: Any) -> None:
        """Record an answer of the model."""
        items = [as_dict(item) for item in response.output]
        calls = [item for item in items if item.get("type") == "function_call"]
        made = (self.ours.as_call(one["call_id"], one["name"], one["arguments"]) for one in calls)
        message = AssistantMessage(
            text="".join(map(text_of, items)),
            tool_calls=tuple(made),
        )
        self.ours.answered(message, usage=usage_of(response.usage))

    async def finish(self, result: Any) -> Episode:
        """The framework has a result."""
        for item in result.new_items:
            if item.type in {"tool_call_output_item", "handoff_output_item"}:
                self._observe(result.context_wrapper, as_dict(item.raw_item))
        waits = bool(result.interruptions)
        for one in result.interruptions:
            self.ours.deferred(one.raw_item.call_id)
        reason: StopReason = "deferred" if waits else "finished"
        return await self.ours.finish(result.final_output, stop_reason=reason)

    def _observe(self, context: Any, raw: Mapping[str, Any]) -> None:
        """What became of a call that we did not run: one of another tool, or a refused one."""
        call = self.ours.asked(raw.get("call_id", ""))
        if call is not None:
            name = self.ours.names.encode(call.name)
            refused = context.is_tool_approved(name, call.call_id) is False
            status: ResultStatus = "denied" if refused else "ok"
            self.ours.observed(call.call_id, raw.get("output", ""), status=status)


_CURRENT: ContextVar[Run | None] = ContextVar("agentkit_openai_agents_run", default=None)
"""The run of the current task. A tool finds it here and not in itself, because the framework keeps
tools in the state of an interrupted run, and that state is gone on with in another one."""


def _recorded(toolset: Toolset, tool: Tool, names: WireNames) -> Any:
    """The framework's object of a tool whose calls the current run makes."""
    outside, waits = unrecorded(toolset, tool, names), asks(toolset, tool)

    async def invoke(context: Any, arguments: str) -> str:
        run = _CURRENT.get()
        if run is None or run.toolset is not toolset:
            return await outside(context, arguments)
        run.ours.offer((tool.name,))  # a run that goes on has the tools that it began with
        call = run.ours.as_call(context.tool_call_id, names.encode(tool.name), arguments)
        result = await run.ours.call(call, approval=True if waits else None)
        run.offer(context.agent)
        return result.text

    return function_tool(toolset, tool, names, invoke)
