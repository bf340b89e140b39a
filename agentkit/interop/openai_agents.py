# mypy: disallow-subclassing-any=False
"""openai-agents: a runner that gives an agent our tools.

Written against openai-agents 0.24. The framework is imported when one of the names below is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any

from agentkit.episodes import StopReason
from agentkit.interop.toolset import Toolset, ToolsetRun, framework_module, stop_reason
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage
from agentkit.models.wire import WireNames, decode_call
from agentkit.tools.schema import copied
from agentkit.tools.tool import Tool

_LIMITS: dict[str, StopReason] = {"MaxTurnsExceeded": "step_limit"}


def require() -> Any:
    """The framework's package; an error that says what to install where it is not there."""
    return framework_module(
        "agents", feature="the adapter for openai-agents", install="pip install openai-agents"
    )


_CURRENT: ContextVar[ToolsetRun | None] = ContextVar("agentkit_openai_agents_run", default=None)


class LibraryRunner:
    """Runs the framework's agents with our tools, and records each run.

    The agent is cloned for each run; the clone has its own tools and those that retrieval chose for
    the input, and gets those that the model searches for. An agent that it hands off to keeps its
    own tools; what it does is a part of the same run.

    Args:
        toolset: The tools with their policies; or a library, or the URL of a store, for defaults.

    Raises:
        MissingExtraError: openai-agents is not installed.
    """

    def __init__(self, toolset: Toolset | Library | str) -> None:
        self._framework = require()
        self.toolset = Toolset.of(toolset)

    async def run(self, agent: Any, input: Any, **options: Any) -> Any:  # noqa: A002 - its name there
        """``Runner.run`` with our tools.

        A run that is interrupted, because a call needs approval, is resumed by handing its
        state (``result.to_state()``, with the decisions made on it) in the place of the input.

        Args:
            agent: The framework's agent.
            input: A text, a list of input items, or the state of an interrupted run.
            **options: Those of ``Runner.run``.

        Returns:
            The framework's result.
        """
        async with self._recorded(agent, input, options) as (run, ours):
            result = await self._framework.Runner.run(ours, input, **options)
            await _finish(run, result)
        return result

    @asynccontextmanager
    async def stream(self, agent: Any, input: Any, **options: Any) -> AsyncIterator[Any]:  # noqa: A002 - as above
        """``Runner.run_streamed`` with our tools: a context that gives the streaming result.

        The episode is made when the context is left; leaving it early cancels the run.

        Args:
            agent: The framework's agent.
            input: As for ``run``.
            **options: Those of ``Runner.run_streamed``.
        """
        async with self._recorded(agent, input, options) as (run, ours):
            result = self._framework.Runner.run_streamed(ours, input, **options)
            yield result
            if not result.is_complete:
                result.cancel()
            await _finish(run, result, error=result.run_loop_exception)

    @asynccontextmanager
    async def _recorded(
        self, agent: Any, given: Any, options: dict[str, Any]
    ) -> AsyncIterator[tuple[ToolsetRun, Any]]:
        """Our run and the clone of the agent; inside, the framework's tasks find the run."""
        request, history = request_of(given, self.toolset.names)
        waiting = given.get_interruptions() if hasattr(given, "get_interruptions") else []
        items = [one.raw_item for one in waiting]
        session, model = options.get("session"), agent.model
        run = await self.toolset.start(
            request,
            history=history,
            session_id=options.get("conversation_id") or getattr(session, "session_id", None),
            model=model if isinstance(model, str) else str(getattr(model, "model", "") or ""),
            answers=[one.call_id for one in items],
        )
        if items:  # begin with the calls that waited for a person
            calls = tuple(run.as_call(one.call_id, one.name, one.arguments) for one in items)
            run.answered(AssistantMessage(tool_calls=calls), seconds=0.0)
        ours = agent.clone(tools=[*agent.tools])
        _offer(self.toolset, run, ours)
        options["hooks"] = _hooks(self._framework, run, options.get("hooks"))
        token = _CURRENT.set(run)
        try:
            yield run, ours
        except BaseException as error:
            run.finish_now(stop_reason=stop_reason(error, _LIMITS), error=error)
            raise
        finally:
            _CURRENT.reset(token)


def _hooks(framework: Any, run: ToolsetRun, others: Any) -> Any:
    """Record what the model answers and tools give, and tell the caller's own hooks of all."""

    async def notify(name: str, *args: Any, **named: Any) -> None:
        if name == "on_llm_start":
            run.asks()
        elif name == "on_llm_end":
            _answered(run, args[2])
        elif name == "on_tool_end":
            run.observed(getattr(args[0], "tool_call_id", ""), args[3])
        if others is not None:
            await getattr(others, name)(*args, **named)

    hooks = framework.RunHooks()
    for name in dir(framework.RunHooks):
        if name.startswith("on_"):
            setattr(hooks, name, partial(notify, name))
    return hooks


def _answered(run: ToolsetRun, response: Any) -> None:
    """Record an answer of the model."""
    items = [as_dict(item) for item in response.output]
    calls = [item for item in items if item.get("type") == "function_call"]
    made = (run.as_call(one["call_id"], one["name"], one["arguments"]) for one in calls)
    usage = Usage(
        requests=response.usage.requests or 1,
        prompt_tokens=response.usage.input_tokens,
        cached_tokens=response.usage.input_tokens_details.cached_tokens,
        completion_tokens=response.usage.output_tokens,
    )
    text = "".join(map(text_of, items))
    run.answered(AssistantMessage(text=text, tool_calls=tuple(made)), usage=usage)


async def _finish(run: ToolsetRun, result: Any, *, error: BaseException | None = None) -> None:
    """The framework has a result, or has stopped without one.

    Args:
        run: Ours.
        result: Its result; without an output if none was awaited.
        error: What ended a stream that was not read to its end.
    """
    for item in result.new_items:
        if item.type in {"tool_call_output_item", "handoff_output_item"}:
            raw = as_dict(item.raw_item)
            call = run.asked(raw.get("call_id", ""))
            if call is not None:  # one that we did not run: of another tool, or a refused one
                name = run.names.encode(call.name)
                denied = result.context_wrapper.is_tool_approved(name, call.call_id) is False
                status: Any = "denied" if denied else "ok"
                run.observed(call.call_id, raw.get("output", ""), status=status)
    for one in result.interruptions:
        run.deferred(one.raw_item.call_id)
    reason: StopReason = "cancelled" if result.final_output is None else "finished"
    if result.interruptions:
        reason = "deferred"
    if error is not None:
        reason = stop_reason(error, _LIMITS)
    await run.finish(result.final_output, stop_reason=reason, error=error)


def as_dict(item: Any) -> Mapping[str, Any]:
    """An item as data, whichever of its two forms it has."""
    if isinstance(item, Mapping):
        return item
    dumped: Mapping[str, Any] = item.model_dump()
    return dumped


def text_of(item: Mapping[str, Any]) -> str:
    """The words of a message item; other items have none."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    if item.get("type", "message") != "message" or content is None:
        return ""
    return "".join(part.get("text") or "" for part in content)


def request_of(given: Any, names: WireNames) -> tuple[str, tuple[Message, ...]]:
    """The request and what was said before it, from any input that the framework takes."""
    if isinstance(given, str):
        return given, ()
    if not isinstance(given, list):  # the state of an interrupted run; its calls are the beginning
        return "", ()
    messages = list(_messages(given, names))
    if messages and isinstance(messages[-1], UserMessage):
        return messages[-1].text, tuple(messages[:-1])
    return "", tuple(messages)


def _messages(items: list[Any], names: WireNames) -> Iterator[Message]:
    called: dict[str, str] = {}
    for item in map(as_dict, items):
        kind = item.get("type", "message")
        if kind == "function_call":
            call: ToolCall = decode_call(item["call_id"], item["name"], item["arguments"], names)
            called[call.call_id] = call.name
            yield AssistantMessage(tool_calls=(call,))
        elif kind == "function_call_output":
            call_id, output = item["call_id"], item["output"]
            text = output if isinstance(output, str) else ""
            yield ToolMessage(call_id=call_id, name=called.get(call_id, ""), text=text)
        elif item.get("role") == "user":
            yield UserMessage(text=text_of(item))
        elif item.get("role") == "assistant":
            yield AssistantMessage(text=text_of(item))


def _offer(toolset: Toolset, run: ToolsetRun, agent: Any) -> None:
    """Give an agent, which no other run has, the tools that were offered since."""
    known = {tool.name for tool in agent.tools}
    for definition in run.offered:
        tool = run.tool(definition.name)
        if tool is not None and run.names.encode(tool.name) not in known:
            agent.tools.append(_function_tool(toolset, tool, run.names))


def _function_tool(toolset: Toolset, tool: Tool, names: WireNames) -> Any:
    """The framework's object of a tool; the run that a call is made in runs and records it."""
    asks = tool.needs_approval and not toolset.approves

    async def invoke(context: Any, arguments: str) -> str:
        call = decode_call(context.tool_call_id, names.encode(tool.name), arguments, names)
        run = _CURRENT.get()
        assert run is not None  # nobody else's agent has such a tool
        run.offer((tool.name,))  # a run that goes on has the tools that it began with
        call = replace(call, call_id=context.tool_call_id)
        result = await run.call(call, approval=True if asks else None)
        _offer(toolset, run, context.agent)  # what the model searched for
        return result.text

    return require().FunctionTool(
        name=names.encode(tool.name),
        description=tool.definition.text,
        params_json_schema=copied(tool.definition.parameters_schema),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # the schema as the library has it; strict mode would rewrite it
        needs_approval=asks,  # the framework runs such a call once a person has said yes
    )
