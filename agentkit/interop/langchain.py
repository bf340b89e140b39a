# mypy: disallow-subclassing-any=False
"""LangChain and LangGraph: our tools as an agent, or as a middleware.

Written against langchain 1.4, langchain-core 1.7 and langgraph 1.2; an agent of LangChain is a
graph of LangGraph. The framework is imported when one of the functions below is called.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypeVar

from agentkit._waiting import wait_for
from agentkit.agent.session import new_episode_id
from agentkit.agent.types import Approval
from agentkit.episodes import StopReason
from agentkit.interop.toolset import Toolset, ToolsetRun, framework_module, stop_reason
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, Message, ToolMessage, Usage, UserMessage
from agentkit.models.chat_completions import encode_tool
from agentkit.models.wire import WireNames, decode_call
from agentkit.tools.schema import copied
from agentkit.tools.tool import Tool

T = TypeVar("T")

RUN_KEY = "agentkit_run"
"""The entry of the graph's state that holds the id of the run; private to the middleware."""

_MOST_OPEN = 10_000
"""Runs that are kept open; a graph that was left between two steps never says that it ended."""


def require() -> None:
    """Say what to install where LangChain's agents are not there."""
    framework_module(
        "langchain",
        "langchain.agents.middleware",
        "langgraph.types",
        feature="the adapter for LangChain",
        install="pip install langchain langgraph",
    )


def library_agent(toolset: Toolset | Library | str, model: Any, **options: Any) -> Any:
    """An agent of ``langchain.agents.create_agent`` that has our tools and records each run.

    It is ``create_agent`` with ``library_middleware`` before the other middleware.

    Args:
        toolset: The tools with their policies; or a library, or the URL of a store, for defaults.
        model: A chat model, or its name.
        **options: The others of ``create_agent``.

    Returns:
        The compiled graph.

    Raises:
        MissingExtraError: langchain or langgraph is not installed.
    """
    require()
    from langchain.agents import create_agent

    middleware = [library_middleware(toolset), *options.pop("middleware", ())]
    return create_agent(model, middleware=middleware, **options)


def library_middleware(toolset: Toolset | Library | str) -> Any:
    """A middleware for ``create_agent`` that offers, runs and records our tools.

    The tools of each step are those that retrieval chose for the request, and those that the model
    searched for since; the agent's own tools stay beside them. A call that needs approval
    interrupts the graph with a request in the form of LangChain's own (``tool_approval``) and is
    answered with ``{"type": "approve"}`` or ``{"type": "reject", "message": ...}``, unless
    ``ToolPolicy(approve=...)`` asks. Interrupts need a checkpointer, as ever. It goes before other
    middleware.

    Args:
        toolset: As for ``library_agent``.

    Raises:
        MissingExtraError: langchain or langgraph is not installed.
    """
    require()
    return _middleware_class()(Runs(toolset))


def _middleware_class() -> Any:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import PrivateStateAttr
    from typing_extensions import TypedDict

    run_id = NotRequired[Annotated[str, PrivateStateAttr]]

    class LibraryMiddleware(AgentMiddleware):  # type: ignore[type-arg, unused-ignore]
        """Offers, runs and records the tools of a library."""

        state_schema = TypedDict("LibraryState", {RUN_KEY: run_id})  # type: ignore[misc, unused-ignore]

        def __init__(self, runs: Runs) -> None:
            super().__init__()
            self._runs = runs
            self.tools: list[Any] = []  # ours change from step to step

        def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {RUN_KEY: new_episode_id()}

        async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {RUN_KEY: new_episode_id()}  # without it LangChain takes a thread for the other

        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            run = waited(self._runs.of(request.state))
            with run.ends_with_graph():
                return run.answered(handler(run.asking(request)))

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            run = await self._runs.of(request.state)
            with run.ends_with_graph():
                return run.answered(await handler(run.asking(request)))

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            run = waited(self._runs.of(request.state))
            with run.ends_with_graph():
                # The graph may have one of that name itself.
                ours = None if request.tool else waited(run.called(request.tool_call))
                return handler(request) if ours is None else ours

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            run = await self._runs.of(request.state)
            with run.ends_with_graph():
                ours = None if request.tool else await run.called(request.tool_call)
                return await handler(request) if ours is None else ours

        def after_agent(self, state: Any, runtime: Any) -> None:
            waited(self._runs.finish(state))

        async def aafter_agent(self, state: Any, runtime: Any) -> None:
            await self._runs.finish(state)

    return LibraryMiddleware


class Runs:
    """The runs that are under way, by the id in the state of the graph.

    Args:
        toolset: What they offer.
    """

    def __init__(self, toolset: Toolset | Library | str) -> None:
        self.toolset = Toolset.of(toolset)
        self._runs: dict[str, Future[Run]] = {}

    async def of(self, state: Mapping[str, Any]) -> Run:
        """The run of a state; started by who asks first, while other threads may ask beside."""
        key = state[RUN_KEY]
        mine: Future[Run] = Future()
        known = self._runs.setdefault(key, mine)
        if known is not mine:
            return await asyncio.wrap_future(known)
        try:
            mine.set_result(await self._started(key, state["messages"]))
        except BaseException as error:
            del self._runs[key]
            mine.set_exception(error)
            raise
        if len(self._runs) > _MOST_OPEN:
            oldest = next(iter(self._runs))
            self._runs.pop(oldest).result().ours.finish_now(stop_reason="cancelled")
        return mine.result()

    async def _started(self, key: str, messages: Sequence[Any]) -> Run:
        last = max((at for at, one in enumerate(messages) if one.type != "tool"), default=0)
        goes_on = bool(messages) and messages[last].type == "ai"
        before = messages[: last + 1] if goes_on else messages[:last]
        config = current_config()
        thread = config.get("configurable", {}).get("thread_id")
        ours = await self.toolset.start(
            "" if goes_on or not messages else text_of(messages[last].content),
            history=tuple(said(before, self.toolset.names)),
            session_id=None if thread is None else str(thread),
        )
        run = Run(ours=ours, closed=lambda: self._runs.pop(key, None), first=_step(config))
        if goes_on:  # in this process or another, after an interrupt or an error
            ours.answered(answer_of(messages[last], ours.names), seconds=0.0)
            run.catch_up(messages[last + 1 :])
        return run

    async def finish(self, state: Mapping[str, Any]) -> None:
        """The graph has an answer."""
        future = self._runs.pop(state[RUN_KEY], None)
        if future is not None:
            run = future.result()
            run.catch_up(state["messages"])
            await run.ours.finish(state.get("structured_response"))


@dataclass(kw_only=True)
class Run:
    """One run of a graph.

    Attributes:
        ours: Chooses, executes, records.
        closed: Called when recording ends.
        first: The step of the graph in which it began.
        ending: Why the graph is about to end without an answer, and by what; None while it goes on.
    """

    ours: ToolsetRun
    closed: Callable[[], object]
    first: int
    ending: tuple[StopReason, BaseException | None] | None = field(default=None)

    def asking(self, request: Any) -> Any:
        """Before the model is asked: the request with our tools in it."""
        run, model = self.ours, request.model
        run.model = run.model or str(
            getattr(model, "model_name", None) or getattr(model, "model", None) or ""
        )
        self.catch_up(request.messages)
        known = {getattr(one, "name", "") for one in request.tools}
        tools = [encode_tool(one, run.names.encode(one.name)) for one in run.offered]
        ours = [copied(one) for one in tools if one["function"]["name"] not in known]
        run.asks()
        return request.override(tools=[*request.tools, *ours])

    def answered(self, response: Any) -> Any:
        """Record an answer; calls with broken arguments stay calls, so that they get an answer."""
        message = next((one for one in response.result if one.type == "ai"), None)
        if message is None:
            return response
        record = answer_of(message, self.ours.names)
        if response.structured_response is not None:  # given by a call that is not a tool's
            texts = (json.dumps(call.arguments) for call in record.tool_calls)
            record = AssistantMessage(text=record.text or "".join(texts))
        for call in message.invalid_tool_calls:
            message.tool_calls.append(
                {"name": call["name"], "args": {}, "id": call["id"], "type": "tool_call"}
            )
        message.invalid_tool_calls.clear()
        self.ours.answered(record, usage=usage_of(message.usage_metadata))
        if record.tool_calls and self._is_last_step():
            self.ending = ("step_limit", RecursionError("the graph's limit of steps is reached"))
        return response

    async def called(self, made: Mapping[str, Any]) -> Any:
        """Run a call of ours: the message that answers it.

        A call that needs a person interrupts the graph, which comes here again with the decision.
        """
        from langchain_core.messages import ToolMessage as Answer

        call = self.ours.as_call(made["id"], made["name"], made["args"])
        tool = self.ours.tool(call.name)
        result = await self.ours.call(call)
        if result.status == "deferred" and tool is not None and tool.needs_approval:
            result = await self.ours.call(call, approval=ask(made, tool))
        if self._is_last_step():
            self.ending = ("step_limit", None)
        status = "error" if result.status in {"failed", "denied"} else "success"
        return Answer(
            content=result.text, name=made["name"], tool_call_id=made["id"], status=status
        )

    def catch_up(self, messages: Sequence[Any]) -> None:
        """Record results of calls that others have run."""
        for message in messages:
            if message.type == "tool":
                status: Any = "failed" if message.status == "error" else "ok"
                text = text_of(message.content)
                self.ours.observed(message.tool_call_id, text, status=status)

    @contextmanager
    def ends_with_graph(self) -> Iterator[None]:
        """End the run by what ends the graph, once the calls beside it have their results."""
        from langgraph.errors import GraphBubbleUp

        try:
            yield
        except GraphBubbleUp:  # LangGraph's way to stop for a person
            self.ending = ("deferred", None)
            raise
        except BaseException as error:
            self.ending = (stop_reason(error), error)
            raise
        finally:
            self._end_when_due()

    def _end_when_due(self) -> None:
        if self.ending is None:
            return
        reason, error = self.ending
        if error is not None or not self.ours.open_calls:
            self.closed()
            self.ours.finish_now(stop_reason=reason, error=error)

    def _is_last_step(self) -> bool:
        """Whether LangGraph allows no further step, which it tells nobody but its caller."""
        config = current_config()
        return _step(config) - self.first >= int(config.get("recursion_limit", 10_000)) - 2


def waited(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine for the framework's synchronous half."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return wait_for(coroutine)
    with ThreadPoolExecutor(1) as pool:  # a synchronous graph inside somebody's event loop
        return pool.submit(copy_context().run, wait_for, coroutine).result()


def current_config() -> Mapping[str, Any]:
    """The configuration of the node of the graph that runs now."""
    from langgraph.config import get_config

    return dict(get_config())


def _step(config: Mapping[str, Any]) -> int:
    return int(config.get("metadata", {}).get("langgraph_step", 0))


def ask(made: Mapping[str, Any], tool: Tool) -> Approval:
    """Interrupt the graph, or say what was answered to the interrupt.

    The request has the form of LangChain's own ``tool_approval``; the answer may be in that form,
    or a plain yes or no. One that says anything beside is no yes.

    Args:
        made: The call, as LangChain writes it.
        tool: What it calls.
    """
    from langgraph.types import interrupt

    request = {
        "type": "tool_approval",
        "tool_call_id": made["id"],
        "name": made["name"],
        "args": made["args"],
        "description": tool.definition.text,
    }
    answer = interrupt(request)
    if isinstance(answer, Mapping):
        approved = answer.get("type") == "approve" and answer.keys() <= {"type", "message"}
        return Approval(approved=approved, reason=str(answer.get("message", "")))
    return Approval(approved=answer is True)


def answer_of(message: Any, names: WireNames) -> AssistantMessage:
    """An answer of the model, with the calls whose arguments LangChain could not read."""
    calls = [decode_call(one["id"], one["name"], one["args"], names) for one in message.tool_calls]
    calls += [
        decode_call(one["id"], one["name"] or "", one["args"] or "", names)
        for one in message.invalid_tool_calls
    ]
    return AssistantMessage(text=text_of(message.content), tool_calls=tuple(calls))


def said(messages: Sequence[Any], names: WireNames) -> Iterator[Message]:
    """A conversation; the application's own instructions are not part of it."""
    for message in messages:
        text = text_of(message.content)
        match message.type:
            case "human":
                yield UserMessage(text=text)
            case "ai":
                yield answer_of(message, names)
            case "tool":
                name = names.decode(message.name or "")
                yield ToolMessage(call_id=message.tool_call_id, name=name, text=text)


def text_of(content: Any) -> str:
    """The words of a message's content; pictures and files have none."""
    if isinstance(content, str):
        return content
    return "".join(block if isinstance(block, str) else block.get("text", "") for block in content)


def usage_of(metadata: Mapping[str, Any] | None) -> Usage:
    """The usage of an answer."""
    counted = metadata or {}
    return Usage(
        requests=1,
        prompt_tokens=counted.get("input_tokens", 0),
        cached_tokens=counted.get("input_token_details", {}).get("cache_read", 0),
        completion_tokens=counted.get("output_tokens", 0),
    )
