"""One run: what the framework is given, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agentkit.episodes import Episode, StopReason
from agentkit.interop.openai_agents.current import CURRENT
from agentkit.interop.openai_agents.messages import as_dict, text_of, usage_of
from agentkit.interop.openai_agents.objects import FunctionTools
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun, stop_reason
from agentkit.messages import AssistantMessage, ResultStatus

_LIMITS: dict[str, StopReason] = {"MaxTurnsExceeded": "step_limit"}


@dataclass(kw_only=True)
class Run:
    """One run.

    Attributes:
        toolset: Where it came from.
        ours: Chooses, executes, records.
        agent: The clone that runs.
        tools: Gives the framework's objects of our tools.
        options: What ``Runner.run`` gets.
    """

    toolset: Toolset
    ours: ToolsetRun
    agent: Any
    tools: FunctionTools
    options: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Inside, the framework's tasks find this run."""
        token = CURRENT.set(self)
        try:
            yield
        finally:
            CURRENT.reset(token)

    def offer(self, agent: Any) -> None:
        """Give the agent, which no other run has, the tools that were offered since."""
        known = {tool.name for tool in agent.tools}
        for definition in self.ours.offered:
            tool = self.ours.tool(definition.name)
            if tool is not None and self.ours.names.encode(tool.name) not in known:
                agent.tools.append(self.tools.of(tool, self.ours))

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

    async def finish(self, result: Any, *, error: BaseException | None = None) -> Episode:
        """The framework has a result, or has stopped without one.

        Args:
            result: What it gave; without an output nobody waited for one.
            error: What ended a stream that nobody read to its end.
        """
        for item in result.new_items:
            if item.type in {"tool_call_output_item", "handoff_output_item"}:
                self._observe(result.context_wrapper, as_dict(item.raw_item))
        for one in result.interruptions:
            self.ours.deferred(one.raw_item.call_id)
        if error is not None:
            return await self.ours.finish(stop_reason=stop_reason(error, _LIMITS), error=error)
        is_left = result.final_output is None
        reason: StopReason = "cancelled" if is_left else "finished"
        if result.interruptions:
            reason = "deferred"
        return await self.ours.finish(result.final_output, stop_reason=reason)

    def broken(self, error: BaseException) -> Episode:
        """The framework has raised, or was cancelled."""
        return self.ours.finish_now(stop_reason=stop_reason(error, _LIMITS), error=error)

    def _observe(self, context: Any, raw: Mapping[str, Any]) -> None:
        """What became of a call that we did not run: one of another tool, or a refused one."""
        call = self.ours.asked(raw.get("call_id", ""))
        if call is not None:
            name = self.ours.names.encode(call.name)
            refused = context.is_tool_approved(name, call.call_id) is False
            status: ResultStatus = "denied" if refused else "ok"
            self.ours.observed(call.call_id, raw.get("output", ""), status=status)
