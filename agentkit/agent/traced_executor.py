"""An executor that tells a tracer of calls and checks; without a tracer the plain one runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from agentkit.agent.executor import Executor
from agentkit.agent.types import Approval
from agentkit.messages import JsonObject, ToolCall, ToolFailure, ToolResult
from agentkit.tools.tool import Tool
from agentkit.tools.validation import ArgumentProblem
from agentkit.tracing.tracer import (
    GuardrailName,
    GuardrailOperation,
    GuardrailVerdict,
    ToolOperation,
)
from agentkit.tracing.tracing import ChildCalls, OpenSpan, Tracing, traceable


@dataclass(kw_only=True)
class TracedExecutor(Executor):
    """An executor whose calls and checks are told.

    A check that passes leaves no span, because it takes microseconds; one that stops a call does,
    and so does every question to a person.

    Attributes:
        tracing: Is told.
    """

    tracing: Tracing
    _open: dict[str, OpenSpan] = field(init=False, default_factory=dict)
    _children: dict[str, ChildCalls] = field(init=False, default_factory=dict)

    async def _run(self, call: ToolCall) -> ToolResult:
        tool = self.offer.get(call.name) or self.library.get(call.name)
        operation = ToolOperation(call=call, tool=tool, library=self.library)
        with self.tracing.span(operation) as span:
            self._open[call.call_id] = span
            span.value = result = await super()._run(call)
        return result

    async def _checked(self, tool: Tool, arguments: JsonObject) -> JsonObject | ArgumentProblem:
        began = time.time_ns()
        checked = await super()._checked(tool, arguments)
        if isinstance(checked, ArgumentProblem):
            self._stopped("validation", tool, "invalid_arguments", began)
        return checked

    def _barred(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> ToolResult | None:
        began = time.time_ns()
        refused = super()._barred(call, tool, arguments)
        if refused is not None and refused.failure is not None:
            failure = refused.failure
            if failure.kind == "contract_violated":
                self._stopped("contract", tool, failure.cause or failure.kind, began)
        return refused

    def _broken_by(self, tool: Tool, arguments: JsonObject, value: object) -> ToolFailure | None:
        began = time.time_ns()
        failure = super()._broken_by(tool, arguments, value)
        if failure is not None:
            self._stopped("postcondition", tool, failure.cause or failure.kind, began)
        return failure

    async def _approval(self, call: ToolCall, tool: Tool) -> Approval | None:
        operation = GuardrailOperation(name="approval", tool=tool.name)
        with self.tracing.span(operation) as span:
            approval = await super()._approval(call, tool)
            cause = "deferred" if approval is None else "denied"
            allowed = approval is not None and approval.approved
            span.value = GuardrailVerdict(allowed=allowed, cause="" if allowed else cause)
        return approval

    async def _attempt(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> ToolResult:
        wanted = self.tracing.child_spans
        if wanted == "off" or traceable(tool) is None:
            return await super()._attempt(call, tool, arguments)
        children = self._children[call.call_id] = ChildCalls(call.call_id, self.library)
        failed = True
        try:
            result = await super()._attempt(call, tool, arguments)
            failed = result.failure is not None
        finally:
            if failed or wanted == "all":
                children.tell(self.tracing, self._open[call.call_id])
        return result

    async def _invoke(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> Any:
        traced, children = traceable(tool), self._children.get(call.call_id)
        if children is None or traced is None:
            return await super()._invoke(call, tool, arguments)
        return await self._called(tool, traced(children.add), arguments)

    def _stopped(self, name: GuardrailName, tool: Tool, cause: str, began_ns: int) -> None:
        self.tracing.tell(
            GuardrailOperation(name=name, tool=tool.name),
            GuardrailVerdict(allowed=False, cause=cause),
            began_ns=began_ns,
        )
