"""The runs of one toolset: each is told what the framework did, by the framework's messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from agentkit.episodes import StopReason
from agentkit.interop.pydantic_ai.framework import value_of
from agentkit.interop.pydantic_ai.messages import said, text_of, usage_of
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun, stop_reason
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, ResultStatus, ToolCall
from agentkit.tools.schema import copied

_OUTCOMES: dict[str, ResultStatus] = {
    "success": "ok",
    "denied": "denied",
    "failed": "failed",
    "retried": "failed",
    "interrupted": "failed",
}


class Runs:
    """The runs that are under way, by the framework's run id."""

    def __init__(self, toolset: Toolset | Library | str) -> None:
        self.toolset = Toolset.of(toolset)
        self._runs: dict[str, asyncio.Task[Run]] = {}

    async def of(self, ctx: Any) -> Run:
        """The run of a context; started by who asks first, while others may ask beside."""
        task = self._runs.get(ctx.run_id)
        if task is None:
            task = asyncio.create_task(Run.started(self.toolset, ctx))
            self._runs[ctx.run_id] = task
        return await task

    async def finished(self, ctx: Any, result: Any) -> None:
        """The framework has a result."""
        run = await self.of(ctx)
        del self._runs[ctx.run_id]
        run.catch_up(result.all_messages())
        waits = type(result.output).__name__ == "DeferredToolRequests"
        reason: StopReason = "deferred" if waits else "finished"
        await run.ours.finish(None if waits else result.output, stop_reason=reason)

    def broken(self, ctx: Any, error: BaseException) -> None:
        """The run ended by an error, or was cancelled."""
        task = self._runs.pop(ctx.run_id, None)
        if task is None or not task.done() or task.cancelled() or task.exception():
            return  # it broke before the model was asked anything
        run = task.result()
        run.catch_up(run.messages)
        run.ours.finish_now(stop_reason=_reason_of(error), error=error)


class Run:
    """One run: ours, and how much of the framework's messages it has been told."""

    def __init__(self, ours: ToolsetRun, messages: list[Any], known: int) -> None:
        self.ours = ours
        self.messages = messages
        self.outputs: set[str] = set()
        self._known = known
        self._defined: dict[str, Any] = {}

    @classmethod
    async def started(cls, toolset: Toolset, ctx: Any) -> Run:
        """Begin a run where the framework is; one without a prompt goes on with calls that wait."""
        request = text_of(ctx.prompt)
        before = [message for message in ctx.messages if message.run_id != ctx.run_id]
        run = await toolset.start(
            request,
            history=tuple(said(before, toolset.names)),
            session_id=ctx.conversation_id if toolset.store is not None else None,
            model=ctx.model.model_name,
        )
        one = cls(run, ctx.messages, len(before))
        if not request:
            one._go_on(before)
        return one

    def _go_on(self, before: list[Any]) -> None:
        """Begin with the answer whose calls waited, and the results that it has had so far."""
        asked = [at for at, message in enumerate(before) if message.kind == "response"]
        if asked:
            self.ours.answered(self._answer(before[asked[-1]]), seconds=0.0)
            for message in before[asked[-1] + 1 :]:
                self._results(message)

    def catch_up(self, messages: list[Any]) -> None:
        """Record the answers and foreign results since the last time."""
        self.messages = messages
        for message in messages[self._known :]:
            if message.kind == "response":
                self.ours.answered(self._answer(message), usage=usage_of(message.usage))
            else:
                self._results(message)
        self._known = len(messages)

    def definitions(self, framework: Any) -> Iterator[Any]:
        """The tools of the next step, in the framework's form, made once a run."""
        for definition in self.ours.offered:
            if definition.name not in self._defined:
                self._defined[definition.name] = framework.tools.ToolDefinition(
                    name=self.ours.names.encode(definition.name),
                    description=definition.text,
                    parameters_json_schema=copied(definition.parameters_schema),
                )
            yield self._defined[definition.name]

    async def call(self, framework: Any, name: str, arguments: dict[str, Any], ctx: Any) -> Any:
        """Run a call; a failure and a call that waits are raised as the framework's signals."""
        call = self.ours.as_call(ctx.tool_call_id or "", name, arguments)
        result = await self.ours.call(call, approval=True if ctx.tool_call_approved else None)
        tool = self.ours.tool(call.name)
        needs_approval = tool is not None and tool.needs_approval and not ctx.tool_call_approved
        return value_of(framework, result, needs_approval=needs_approval)

    def _answer(self, message: Any) -> AssistantMessage:
        """The answer; calls by which the framework takes a structured answer are its text."""
        calls = [part for part in message.parts if part.part_kind == "tool-call"]
        texts = [part.content for part in message.parts if part.part_kind == "text"]
        texts += [part.args_as_json_str() for part in calls if part.tool_name in self.outputs]
        others = (self._call(part) for part in calls if part.tool_name not in self.outputs)
        return AssistantMessage(text="".join(texts), tool_calls=tuple(others))

    def _call(self, part: Any) -> ToolCall:
        return self.ours.as_call(part.tool_call_id, part.tool_name, part.args or {})

    def _results(self, message: Any) -> None:
        for part in message.parts:
            if part.part_kind == "tool-return":
                self.ours.observed(part.tool_call_id, part.content, status=_OUTCOMES[part.outcome])


def _reason_of(error: BaseException) -> StopReason:
    which: StopReason = "token_limit" if "token" in str(error) else "step_limit"
    return stop_reason(error, {"UsageLimitExceeded": which})
