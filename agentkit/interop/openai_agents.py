# mypy: disallow-subclassing-any=False
"""openai-agents: a runner that gives an agent our tools, or plain tool objects.

Written against openai-agents 0.24. The framework is imported when one of the names below is used.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from agentkit.episodes import Episode, StopReason
from agentkit.errors import MissingExtraError
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun
from agentkit.library.library import Library
from agentkit.messages import (
    AssistantMessage,
    Message,
    ResultStatus,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.response import decode_call
from agentkit.tools.schema import copied
from agentkit.tools.tool import Tool

_HOOKS = ("on_agent_start", "on_agent_end", "on_handoff", "on_tool_start")


class LibraryRunner:
    """Runs the framework's agents with our tools, and records each run.

    The agent is cloned for each run; the clone has its own tools and those that retrieval chose for
    the input, and gets those that the model searches for. An agent that it hands off to keeps its
    own tools alone.

    Args:
        toolset: The tools with their policies; or a library, or the URL of a store, for defaults.

    Raises:
        MissingExtraError: openai-agents is not installed.
    """

    def __init__(self, toolset: Toolset | Library | str) -> None:
        _framework()
        self.toolset = Toolset.of(toolset)

    async def run(self, agent: Any, input: Any, **options: Any) -> Any:  # noqa: A002 - its name there
        """``Runner.run`` with our tools.

        A run that is interrupted, because a call needs approval, is gone on with by handing its
        state (``result.to_state()``, with the decisions made on it) in the place of the input.

        Args:
            agent: The framework's agent.
            input: A text, a list of input items, or the state of an interrupted run.
            **options: Those of ``Runner.run``.

        Returns:
            The framework's result.
        """
        run = await self._started(agent, input, options)
        try:
            with run.current():
                result = await _framework().Runner.run(run.agent, input, **run.options)
        except BaseException as error:
            run.ours.finish_now(stop_reason=_reason(error), error=error)
            raise
        await run.finish(result)
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
        run = await self._started(agent, input, options)
        try:
            with run.current():
                result = _framework().Runner.run_streamed(run.agent, input, **run.options)
            yield result
        except BaseException as error:
            run.ours.finish_now(stop_reason=_reason(error), error=error)
            raise
        if result.is_complete:
            await run.finish(result)
        else:
            result.cancel()
            await run.ours.finish(stop_reason="cancelled")

    async def _started(self, agent: Any, given: Any, options: Mapping[str, Any]) -> _Run:
        names = WireNames(self.toolset.library.tools)
        request, history = _request_of(given, names)
        session = options.get("session")
        ours = await self.toolset.start(
            request,
            history=history,
            session_id=options.get("conversation_id") or getattr(session, "session_id", None),
            model=_model_name(agent),
        )
        run = _Run(toolset=self.toolset, ours=ours, agent=agent)
        hooks = _hooks_class(_framework())(run, options.get("hooks"))
        run.options = {**options, "hooks": hooks}
        run.agent = agent.clone(tools=[*agent.tools])
        run.offer(run.agent)
        if hasattr(given, "get_interruptions"):
            run.go_on(given.get_interruptions())
        return run


def to_openai_agents(library: Toolset | Library | str) -> list[Any]:
    """The library's tools as ``agents.FunctionTool`` objects, without retrieval and records.

    Calls run through our validation, rules and timeouts; a failure reaches the model as the text of
    the result. Tools that need approval carry ``needs_approval``.

    Raises:
        MissingExtraError: openai-agents is not installed.
    """
    _framework()
    toolset = Toolset.of(library)
    names = WireNames(toolset.library.tools)
    return [_function_tool(toolset, tool, names, records=False) for tool in toolset.library]


def _framework() -> Any:
    try:
        import agents
    except ImportError as error:
        raise MissingExtraError(
            "agentkit.interop.openai_agents",
            package="agents",
            install="pip install openai-agents",
        ) from error
    framework: ModuleType = agents
    return framework


@dataclass(kw_only=True)
class _Run:
    """One run.

    Attributes:
        toolset: Where it came from.
        ours: Chooses, executes, records.
        agent: The clone that runs.
        options: What ``Runner.run`` gets.
        asked: When the model was asked last, on the clock of ``time.perf_counter``.
    """

    toolset: Toolset
    ours: ToolsetRun
    agent: Any
    options: dict[str, Any] = field(default_factory=dict)
    asked: float = 0.0

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
                made = _function_tool(self.toolset, tool, self.ours.names, records=True)
                agent.tools.append(made)

    def go_on(self, interruptions: list[Any]) -> None:
        """Begin with the calls that waited for a person."""
        items = [one.raw_item for one in interruptions]
        calls = (self.ours.as_call(one.call_id, one.name, one.arguments) for one in items)
        self.ours.answered(AssistantMessage(tool_calls=tuple(calls)))

    def answered(self, response: Any) -> None:
        """Record an answer of the model."""
        items = [_as_dict(item) for item in response.output]
        calls = [item for item in items if item.get("type") == "function_call"]
        made = (self.ours.as_call(one["call_id"], one["name"], one["arguments"]) for one in calls)
        message = AssistantMessage(
            text="".join(map(_text_of, items)),
            tool_calls=tuple(made),
        )
        seconds = time.perf_counter() - self.asked
        self.ours.answered(message, usage=_usage(response.usage), seconds=seconds)

    async def finish(self, result: Any) -> Episode:
        """The framework has a result."""
        for item in result.new_items:
            if item.type in {"tool_call_output_item", "handoff_output_item"}:
                self._observe(result.context_wrapper, _as_dict(item.raw_item))
        waits = bool(result.interruptions)
        for one in result.interruptions:
            raw = one.raw_item
            self.ours.deferred(self.ours.as_call(raw.call_id, raw.name, raw.arguments))
        reason: StopReason = "deferred" if waits else "finished"
        return await self.ours.finish(result.final_output, stop_reason=reason)

    def _observe(self, context: Any, raw: Mapping[str, Any]) -> None:
        """What became of a call that we did not run: one of another tool, or a refused one."""
        call = self.ours.asked(raw.get("call_id", ""))
        if call is not None and self.ours.waits(call):
            name = self.ours.names.encode(call.name)
            refused = context.is_tool_approved(name, call.call_id) is False
            status: ResultStatus = "denied" if refused else "ok"
            self.ours.observed(call, raw.get("output", ""), status=status)


_CURRENT: ContextVar[_Run | None] = ContextVar("agentkit_openai_agents_run", default=None)
"""The run of the current task. A tool finds it here and not in itself, because the framework keeps
tools in the state of an interrupted run, and that state is gone on with in another one."""


def _function_tool(toolset: Toolset, tool: Tool, names: WireNames, *, records: bool) -> Any:
    asks = tool.needs_approval and not toolset.approves

    async def invoke(context: Any, arguments: str) -> str:
        run = _CURRENT.get()
        if run is None or run.toolset is not toolset or not records:
            call = decode_call(context.tool_call_id, names.encode(tool.name), arguments, names)
            return (await toolset.execute(call, approved=asks)).text
        run.ours.offer((tool.name,))  # a run that goes on has the tools that it began with
        call = run.ours.as_call(context.tool_call_id, names.encode(tool.name), arguments)
        result = await run.ours.call(call, approval=True if asks else None)
        run.offer(context.agent)
        return result.text

    return _framework().FunctionTool(
        name=names.encode(tool.name),
        description=tool.definition.text,
        params_json_schema=copied(tool.definition.parameters_schema),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # the schema as the library has it; strict mode would rewrite it
        needs_approval=asks,  # the framework runs such a call once a person has said yes
    )


def _hooks_class(framework: Any) -> Any:
    class Hooks(framework.RunHooks):
        """Records what the model answers; everything else goes to the caller's hooks."""

        def __init__(self, run: _Run, others: Any) -> None:
            self._run, self._others = run, others
            for name in _HOOKS if others is not None else ():
                setattr(self, name, getattr(others, name))

        async def on_llm_start(self, *args: Any) -> None:
            self._run.asked = time.perf_counter()
            if self._others is not None:
                await self._others.on_llm_start(*args)

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            self._run.answered(response)
            if self._others is not None:
                await self._others.on_llm_end(context, agent, response)

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            call = self._run.ours.asked(getattr(context, "tool_call_id", ""))
            if call is not None and self._run.ours.waits(call):
                self._run.ours.observed(call, result)
            if self._others is not None:
                await self._others.on_tool_end(context, agent, tool, result)

    return Hooks


def _reason(error: BaseException) -> StopReason:
    if not isinstance(error, Exception):
        return "cancelled"
    return "step_limit" if type(error).__name__ == "MaxTurnsExceeded" else "error"


def _usage(usage: Any) -> Usage:
    return Usage(
        requests=usage.requests or 1,
        prompt_tokens=usage.input_tokens,
        cached_tokens=usage.input_tokens_details.cached_tokens,
        completion_tokens=usage.output_tokens,
    )


def _model_name(agent: Any) -> str:
    model = agent.model
    return model if isinstance(model, str) else str(getattr(model, "model", "") or "")


def _as_dict(item: Any) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        return item
    dumped: Mapping[str, Any] = item.model_dump()
    return dumped


def _text_of(item: Mapping[str, Any]) -> str:
    """The words of a message item; other items have none."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    if item.get("type", "message") != "message" or content is None:
        return ""
    return "".join(part.get("text") or "" for part in content)


def _request_of(given: Any, names: WireNames) -> tuple[str, tuple[Message, ...]]:
    """The request and what was said before it, from any input that the framework takes."""
    if isinstance(given, str):
        return given, ()
    if not isinstance(given, list):  # the state of an interrupted run; its calls are the beginning
        return "", ()
    said = list(_said(given, names))
    if said and isinstance(said[-1], UserMessage):
        return said[-1].text, tuple(said[:-1])
    return "", tuple(said)


def _said(items: list[Any], names: WireNames) -> Iterator[Message]:
    called: dict[str, str] = {}
    for item in map(_as_dict, items):
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
            yield UserMessage(text=_text_of(item))
        elif item.get("role") == "assistant":
            yield AssistantMessage(text=_text_of(item))
