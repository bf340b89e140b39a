# mypy: disallow-subclassing-any=False
"""openai-agents: a runner that gives an agent our tools.

Written against openai-agents 0.24. The framework is imported when one of the names below is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from agentkit.episodes import Episode, StopReason
from agentkit.errors import MissingExtraError
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun, stop_reason
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
from agentkit.models.wire import WireNames, decode_call
from agentkit.tools.schema import copied
from agentkit.tools.tool import Tool


def require() -> Any:
    """The framework's package; an error that says what to install where it is not there."""
    try:
        import agents
    except ImportError as error:
        raise MissingExtraError(
            "the adapter for openai-agents",
            package="agents",
            install="pip install openai-agents",
        ) from error
    framework: ModuleType = agents
    return framework


_LIMITS: dict[str, StopReason] = {"MaxTurnsExceeded": "step_limit"}


@dataclass(kw_only=True)
class Run:
    """One run.

    Attributes:
        ours: Chooses, executes, records.
        agent: The clone that runs.
        toolset: Whose tools it has.
        options: What ``Runner.run`` gets.
    """

    ours: ToolsetRun
    agent: Any
    toolset: Toolset
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
                agent.tools.append(function_tool(self.toolset, tool, self.ours.names))

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


CURRENT: ContextVar[Run | None] = ContextVar("agentkit_openai_agents_run", default=None)

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
        self._hooks = hooks_class(require())
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
                result = await require().Runner.run(run.agent, input, **run.options)
        except BaseException as error:
            run.broken(error)
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
                result = require().Runner.run_streamed(run.agent, input, **run.options)
            yield result
        except BaseException as error:
            run.broken(error)
            raise
        if not result.is_complete:
            result.cancel()
        await run.finish(result, error=result.run_loop_exception)

    async def _started(self, agent: Any, given: Any, options: Mapping[str, Any]) -> Run:
        request, history = request_of(given, self.toolset.names)
        waiting = given.get_interruptions() if hasattr(given, "get_interruptions") else []
        session = options.get("session")
        ours = await self.toolset.start(
            request,
            history=history,
            session_id=options.get("conversation_id") or getattr(session, "session_id", None),
            model=_model_name(agent),
            answers=[one.raw_item.call_id for one in waiting],
        )
        run = Run(ours=ours, agent=agent, toolset=self.toolset)
        run.options = {**options, "hooks": self._hooks(run, options.get("hooks"))}
        run.agent = agent.clone(tools=[*agent.tools])
        run.offer(run.agent)
        if waiting:
            run.go_on(waiting)
        return run


def _model_name(agent: Any) -> str:
    model = agent.model
    return model if isinstance(model, str) else str(getattr(model, "model", "") or "")


def usage_of(usage: Any) -> Usage:
    """What an answer cost."""
    return Usage(
        requests=usage.requests or 1,
        prompt_tokens=usage.input_tokens,
        cached_tokens=usage.input_tokens_details.cached_tokens,
        completion_tokens=usage.output_tokens,
    )


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
    said = list(_said(given, names))
    if said and isinstance(said[-1], UserMessage):
        return said[-1].text, tuple(said[:-1])
    return "", tuple(said)


def _said(items: list[Any], names: WireNames) -> Iterator[Message]:
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


def function_tool(toolset: Toolset, tool: Tool, names: WireNames) -> Any:
    """The framework's object of a tool.

    Args:
        toolset: Whose tool it is; the run that a call is made in runs and records it.
        tool: The tool.
        names: Its library's names, as providers accept them.
    """
    asks = tool.needs_approval and not toolset.approves

    async def invoke(context: Any, arguments: str) -> str:
        call = decode_call(context.tool_call_id, names.encode(tool.name), arguments, names)
        call = replace(call, call_id=context.tool_call_id)
        run = CURRENT.get()
        assert run is not None  # nobody else's agent has such a tool
        run.ours.offer((tool.name,))  # a run that goes on has the tools that it began with
        result = await run.ours.call(call, approval=True if asks else None)
        run.offer(context.agent)  # what the model searched for
        return result.text

    return require().FunctionTool(
        name=names.encode(tool.name),
        description=tool.definition.text,
        params_json_schema=copied(tool.definition.parameters_schema),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # the schema as the library has it; strict mode would rewrite it
        needs_approval=asks,  # the framework runs such a call once a person has said yes
    )
