"""The runs of one middleware: each is told what the graph does, by the graph's state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from agentkit.episodes import StopReason
from agentkit.interop.langchain.approval import ask
from agentkit.interop.langchain.endings import chains
from agentkit.interop.langchain.framework import current_config
from agentkit.interop.langchain.messages import answer_of, message_of, said, text_of, usage_of
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage
from agentkit.models.wire.request import encode_tool
from agentkit.tools.schema import copied

RUN_KEY = "agentkit_run"
"""The entry of the graph's state that holds the id of the run; private to the middleware."""


class Runs:
    """The runs that are under way, by the id in the state of the graph.

    Args:
        toolset: What they offer.
    """

    def __init__(self, toolset: Toolset | Library | str) -> None:
        self.toolset = Toolset.of(toolset)
        self._runs: dict[str, Future[ToolsetRun]] = {}

    async def of(self, state: Mapping[str, Any]) -> ToolsetRun:
        """The run of a state; started by who asks first, while other threads may ask beside."""
        key = state[RUN_KEY]
        mine: Future[ToolsetRun] = Future()
        known = self._runs.setdefault(key, mine)
        if known is not mine:
            return await asyncio.wrap_future(known)
        try:
            mine.set_result(await self._started(state["messages"]))
        except BaseException as error:
            del self._runs[key]
            mine.set_exception(error)
            raise
        chains().expect(lambda reason, error: self.end(key, reason, error))
        return mine.result()

    async def _started(self, messages: Sequence[Any]) -> ToolsetRun:
        last = max((at for at, one in enumerate(messages) if one.type != "tool"), default=0)
        goes_on = bool(messages) and messages[last].type == "ai"
        before = messages[: last + 1] if goes_on else messages[:last]
        run = await self.toolset.start(
            "" if goes_on or not messages else text_of(messages[last].content),
            history=tuple(said(before, self.toolset.names)),
            session_id=_thread_id(),
        )
        if goes_on:  # in this process or another, after an interrupt or an error
            run.answered(answer_of(messages[last], run.names), seconds=0.0)
            _catch_up(run, messages[last + 1 :])
        return run

    async def asking(self, request: Any) -> tuple[ToolsetRun, Any]:
        """Before the model is asked: the run, and the request with our tools in it."""
        run = await self.of(request.state)
        run.model = run.model or _model_name(request.model)
        _catch_up(run, request.messages)
        known = {getattr(one, "name", "") for one in request.tools}
        ours = [one for one in _tools(run) if one["function"]["name"] not in known]
        run.asks()
        return run, request.override(tools=[*request.tools, *ours])

    async def called(self, request: Any) -> Any:
        """Run a call of ours: the message that answers it; None for a call of another tool.

        A call that needs a person interrupts the graph, which comes here again with the decision.
        """
        run, made = await self.of(request.state), request.tool_call
        if request.tool is not None:  # the graph has one of that name itself
            return None
        call = run.as_call(made["id"], made["name"], made["args"])
        tool = run.tool(call.name)
        result = await run.call(call)
        if result.status == "deferred" and tool is not None and tool.needs_approval:
            result = await run.call(call, approval=ask(made, tool))
        return message_of(result, made)

    async def finish(self, state: Mapping[str, Any]) -> None:
        """The graph has an answer."""
        future = self._runs.pop(state[RUN_KEY], None)
        if future is not None:
            run = future.result()
            _catch_up(run, state["messages"])
            await run.finish(state.get("structured_response"))

    def end(self, key: str, reason: StopReason, error: BaseException | None) -> None:
        """The graph has ended; nothing new for a run that had an answer."""
        future = self._runs.pop(key, None)
        if future is not None:
            future.result().finish_now(stop_reason=reason, error=error)


def answered(run: ToolsetRun, response: Any) -> None:
    """Record an answer, and let calls with broken arguments be calls, so that they are told."""
    message = next((one for one in response.result if one.type == "ai"), None)
    if message is None:
        return
    record = answer_of(message, run.names)
    if response.structured_response is not None:  # given by a call that is no tool's
        texts = (json.dumps(call.arguments) for call in record.tool_calls)
        record = AssistantMessage(text=record.text or "".join(texts))
    for call in message.invalid_tool_calls:
        message.tool_calls.append(
            {"name": call["name"], "args": {}, "id": call["id"], "type": "tool_call"}
        )
    message.invalid_tool_calls.clear()
    run.answered(record, usage=usage_of(message.usage_metadata))


def _tools(run: ToolsetRun) -> list[dict[str, Any]]:
    """The tools of the next step, in the form that every chat model of LangChain takes."""
    encode = run.names.encode
    return [copied(encode_tool(one, encode(one.name))) for one in run.offered]


def _catch_up(run: ToolsetRun, messages: Sequence[Any]) -> None:
    """Record results of calls that others have run."""
    for message in messages:
        if message.type == "tool":
            failed = message.status == "error"
            text = text_of(message.content)
            run.observed(message.tool_call_id, text, status="failed" if failed else "ok")


def _model_name(model: Any) -> str:
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or "")


def _thread_id() -> str | None:
    """The conversation, for graphs that keep one."""
    thread = current_config().get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)
