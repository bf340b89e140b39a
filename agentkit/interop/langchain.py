# mypy: disallow-subclassing-any=False
"""LangChain and LangGraph: our tools as an agent, as a middleware, or as plain tool objects.

Written against langchain 1.4, langchain-core 1.7 and langgraph 1.2; an agent of LangChain is a
graph of LangGraph. The framework is imported when one of the functions below is called.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, TypeVar

from agentkit._waiting import wait_for
from agentkit.agent.approval import Approval
from agentkit.agent.recording import new_episode_id
from agentkit.episodes import StopReason
from agentkit.errors import MissingExtraError, UsageError
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun
from agentkit.library.library import Library
from agentkit.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.request import encode_tool
from agentkit.models.wire.response import decode_call
from agentkit.tools.schema import copied
from agentkit.tools.tool import Tool

T = TypeVar("T")

_TAKEN_BY_LANGCHAIN = frozenset({"config", "run_manager"})

RUN_KEY = "agentkit_run"
"""The entry of the graph's state that holds the id of the run; private to the middleware."""


def library_agent(toolset: Toolset | Library | str, model: Any, **options: Any) -> Any:
    """An agent of ``langchain.agents.create_agent`` that has our tools and records each run.

    It is ``library_middleware`` and a callback that notices runs which end outside of the
    middleware's sight, such as by the limit of steps.

    Args:
        toolset: The tools with their policies; or a library, or the URL of a store, for defaults.
        model: A chat model, or its name.
        **options: The others of ``create_agent``.

    Returns:
        The compiled graph.

    Raises:
        MissingExtraError: langchain or langgraph is not installed.
    """
    _framework()
    from langchain.agents import create_agent

    runs = _Runs(toolset)
    middleware = [_middleware_class()(runs), *options.pop("middleware", ())]
    agent = create_agent(model, middleware=middleware, **options)
    return agent.with_config(callbacks=[_callback_class()(runs)])


def library_middleware(toolset: Toolset | Library | str) -> Any:
    """A middleware for ``create_agent`` that offers, runs and records our tools.

    The tools of each step are those that retrieval chose for the request, and those that the model
    searched for since; the agent's own tools stay beside them. A call that needs approval
    interrupts the graph with a request in the form of LangChain's own (``tool_approval``) and is
    answered with ``{"type": "approve"}`` or ``{"type": "reject", "message": ...}``, unless
    ``Toolset(approve=...)`` asks. Interrupts need a checkpointer, as ever.

    Args:
        toolset: As for ``library_agent``.

    Raises:
        MissingExtraError: langchain or langgraph is not installed.
    """
    _framework()
    return _middleware_class()(_Runs(toolset))


def to_langchain(library: Toolset | Library | str) -> list[Any]:
    """The library's tools as ``StructuredTool`` objects, without retrieval and records.

    Calls run through our validation, rules and timeouts; a failure becomes a tool message with the
    status ``error``. Calls that need approval are refused, unless ``Toolset(approve=...)`` asks.

    Raises:
        MissingExtraError: langchain-core is not installed.
        UsageError: A parameter has a name that these objects can not pass.
    """
    try:
        from langchain_core.tools import StructuredTool
    except ImportError as error:
        raise _missing("langchain_core", "langchain-core") from error
    toolset = Toolset.of(library)
    names = WireNames(toolset.library.tools)
    return [_structured_tool(StructuredTool, toolset, tool, names) for tool in toolset.library]


def _framework() -> None:
    try:
        import langchain.agents.middleware  # noqa: F401 - asked whether it is there
        import langgraph.types  # noqa: F401 - as above
    except ImportError as error:
        raise _missing("langchain", "langchain langgraph") from error


def _missing(package: str, distributions: str) -> MissingExtraError:
    install = f"pip install {distributions}"
    return MissingExtraError("agentkit.interop.langchain", package=package, install=install)


@dataclass(kw_only=True)
class _Run:
    """One run.

    Attributes:
        ours: Chooses, executes, records.
        asked: When the model was asked last, on the clock of ``time.perf_counter``.
    """

    ours: ToolsetRun
    asked: float = 0.0

    def tools(self) -> list[dict[str, Any]]:
        """The tools of the next step, in the form that every chat model of LangChain takes."""
        encode = self.ours.names.encode
        return [copied(encode_tool(one, encode(one.name))) for one in self.ours.offered]

    def catch_up(self, messages: Sequence[Any]) -> None:
        """Record results of calls that others have run."""
        for message in messages:
            if message.type == "tool":
                call = self.ours.asked(message.tool_call_id)
                if call is not None and self.ours.waits(call):
                    failed = message.status == "error"
                    text = _text_of(message.content)
                    self.ours.observed(call, text, status="failed" if failed else "ok")

    def answered(self, response: Any) -> None:
        """Record an answer, and let calls with broken arguments be calls, so that they are told."""
        message = next((one for one in response.result if one.type == "ai"), None)
        if message is None:
            return
        record = _answer(message, self.ours.names)
        if response.structured_response is not None:  # given by a call that is no tool's
            texts = (json.dumps(call.arguments) for call in record.tool_calls)
            record = AssistantMessage(text=record.text or "".join(texts))
        for call in message.invalid_tool_calls:
            message.tool_calls.append(
                {"name": call["name"], "args": {}, "id": call["id"], "type": "tool_call"}
            )
        message.invalid_tool_calls.clear()
        seconds = time.perf_counter() - self.asked
        self.ours.answered(record, usage=_usage(message.usage_metadata), seconds=seconds)


class _Runs:
    """The runs that are under way, by the id in the state of the graph."""

    def __init__(self, toolset: Toolset | Library | str) -> None:
        self.toolset = Toolset.of(toolset)
        self.roots = _Roots()
        self._runs: dict[str, Future[_Run]] = {}

    async def of(self, state: Mapping[str, Any]) -> _Run:
        """The run of a state; started by who asks first, while other threads may ask beside."""
        mine: Future[_Run] = Future()
        known = self._runs.setdefault(state[RUN_KEY], mine)
        if known is not mine:
            return await asyncio.wrap_future(known)
        try:
            mine.set_result(await self._started(state["messages"]))
            self.roots.begun(state[RUN_KEY])
        except BaseException as error:
            del self._runs[state[RUN_KEY]]
            mine.set_exception(error)
            raise
        return mine.result()

    async def _started(self, messages: Sequence[Any]) -> _Run:
        names = WireNames(self.toolset.library.tools)
        last = max((at for at, one in enumerate(messages) if one.type != "tool"), default=0)
        goes_on = bool(messages) and messages[last].type == "ai"
        before = messages[: last + 1] if goes_on else messages[:last]
        request = "" if goes_on or not messages else _text_of(messages[last].content)
        said = tuple(_said(before, names))
        ours = await self.toolset.start(request, history=said, session_id=_thread_id())
        run = _Run(ours=ours)
        if goes_on:  # in this process or another, after an interrupt or an error
            ours.answered(_answer(messages[last], ours.names))
            run.catch_up(messages[last + 1 :])
        return run

    async def asking(self, request: Any) -> tuple[_Run, Any]:
        """Before the model is asked: the run, and the request with our tools in it."""
        run = await self.of(request.state)
        run.ours.model = run.ours.model or _model_name(request.model)
        run.catch_up(request.messages)
        run.asked = time.perf_counter()
        known = {getattr(one, "name", "") for one in request.tools}
        ours = [one for one in run.tools() if one["function"]["name"] not in known]
        return run, request.override(tools=[*request.tools, *ours])

    async def called(self, request: Any) -> Any:
        """Run a call of ours: the message that answers it; None for a call of another tool.

        A call that needs a person interrupts the graph, which comes here again with the decision.
        """
        run, made = await self.of(request.state), request.tool_call
        call = run.ours.as_call(made["id"], made["name"], made["args"])
        tool = run.ours.tool(call.name)
        if request.tool is not None:  # the graph has one of that name itself
            return None
        asked = run.ours.asked(call.call_id)
        if asked is not None and asked.malformed is not None:
            call = asked
        result = await run.ours.call(call)
        if result.status == "deferred" and tool is not None and tool.needs_approval:
            result = await run.ours.call(call, approval=_asked(made, tool))
        return _message(result, made)

    async def finish(self, state: Mapping[str, Any]) -> None:
        """The graph has an answer."""
        future = self._runs.pop(state[RUN_KEY], None)
        if future is not None:
            run = future.result()
            run.catch_up(state["messages"])
            await run.ours.finish(state.get("structured_response"))

    def end(self, key: str, reason: StopReason, error: BaseException | None = None) -> None:
        """The run ended without an answer."""
        future = self._runs.pop(key, None)
        if future is not None and future.done() and future.exception() is None:
            future.result().ours.finish_now(stop_reason=reason, error=error)


def _middleware_class() -> Any:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import PrivateStateAttr
    from typing_extensions import TypedDict

    run_id = NotRequired[Annotated[str, PrivateStateAttr]]

    class LibraryMiddleware(AgentMiddleware):  # type: ignore[type-arg, unused-ignore]
        """Offers, runs and records the tools of a library."""

        state_schema = TypedDict("LibraryState", {RUN_KEY: run_id})  # type: ignore[misc, unused-ignore]

        def __init__(self, runs: _Runs) -> None:
            super().__init__()
            self._runs = runs
            self.tools: list[Any] = []  # ours change from step to step

        def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {RUN_KEY: new_episode_id()}

        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            run, asked = _waited(self._runs.asking(request))
            with _Ending(self._runs, request.state[RUN_KEY]):
                response = handler(asked)
            run.answered(response)
            return response

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            run, asked = await self._runs.asking(request)
            with _Ending(self._runs, request.state[RUN_KEY]):
                response = await handler(asked)
            run.answered(response)
            return response

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            with _Ending(self._runs, request.state[RUN_KEY]):
                answer = _waited(self._runs.called(request))
                return handler(request) if answer is None else answer

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            with _Ending(self._runs, request.state[RUN_KEY]):
                answer = await self._runs.called(request)
                return await handler(request) if answer is None else answer

        def after_agent(self, state: Any, runtime: Any) -> None:
            _waited(self._runs.finish(state))

        async def aafter_agent(self, state: Any, runtime: Any) -> None:
            await self._runs.finish(state)

    return LibraryMiddleware


class _Roots:
    """Which graph a run belongs to, by the framework's ids of chains that are under way.

    The root of a graph is told of every error that ends it, and the middleware is not.
    """

    def __init__(self) -> None:
        self.parents: dict[Any, Any] = {}
        self._runs: dict[Any, str] = {}

    def begun(self, key: str) -> None:
        """A run has begun, or goes on, inside of the current chain."""
        from langgraph.config import get_config

        chain = getattr(get_config().get("callbacks"), "parent_run_id", None)
        while self.parents.get(chain) in self.parents:
            chain = self.parents[chain]
        if chain in self.parents:
            self._runs[chain] = key

    def ended(self, chain: Any) -> str | None:
        """A chain has ended: the run whose root it was."""
        self.parents.pop(chain, None)
        return self._runs.pop(chain, None)


def _callback_class() -> Any:
    from langchain_core.callbacks import BaseCallbackHandler

    class Endings(BaseCallbackHandler):
        """Ends runs whose graph has ended by an error."""

        run_inline = True

        def __init__(self, runs: _Runs) -> None:
            self._runs = runs

        def on_chain_start(
            self, *_: Any, run_id: Any, parent_run_id: Any = None, **__: Any
        ) -> None:
            self._runs.roots.parents[run_id] = parent_run_id

        def on_chain_end(self, *_: Any, run_id: Any, **__: Any) -> None:
            self._runs.roots.ended(run_id)

        def on_chain_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
            key = self._runs.roots.ended(run_id)
            if key is not None:
                self._runs.end(key, _reason(error), error)

    return Endings


class _Ending:
    """Ends a run when what happens inside raises.

    Args:
        runs: The runs under way.
        key: The run.
    """

    def __init__(self, runs: _Runs, key: str) -> None:
        self._runs, self._key = runs, key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._runs.end(self._key, _reason(error), None if _bubbles(error) else error)


def _structured_tool(kind: Any, toolset: Toolset, tool: Tool, names: WireNames) -> Any:
    from langchain_core.tools import ToolException

    taken = sorted(_TAKEN_BY_LANGCHAIN & tool.definition.signature.properties.keys())
    if taken:
        raise UsageError(
            f"the tool {tool.name!r} has a parameter {taken[0]!r}, a name that LangChain's tool "
            "objects take for themselves; use library_agent or library_middleware, which pass it"
        )

    async def acall(**arguments: Any) -> str:
        call = ToolCall(call_id="", name=tool.name, arguments=arguments)
        result = await toolset.execute(call)
        if result.status != "ok":
            raise ToolException(result.text)
        return result.text

    def call(**arguments: Any) -> str:
        return _waited(acall(**arguments))

    return kind(
        name=names.encode(tool.name),
        description=tool.definition.text,
        args_schema=copied(tool.definition.parameters_schema),
        func=call,
        coroutine=acall,
        handle_tool_error=True,
    )


def _waited(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, for the framework's synchronous half."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return wait_for(coroutine)
    with ThreadPoolExecutor(1) as pool:  # a synchronous graph inside somebody's event loop
        return pool.submit(copy_context().run, wait_for, coroutine).result()


def _asked(made: Mapping[str, Any], tool: Tool) -> Approval:
    """What a person says to a call, in the framework's form or as a plain yes or no."""
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
        approved = answer.get("type") == "approve"
        return Approval(approved=approved, reason=str(answer.get("message", "")))
    return Approval(approved=answer is True)


def _message(result: ToolResult, made: Mapping[str, Any]) -> Any:
    from langchain_core.messages import ToolMessage as Answer

    status = "error" if result.status in {"failed", "denied"} else "success"
    return Answer(content=result.text, name=made["name"], tool_call_id=made["id"], status=status)


def _answer(message: Any, names: WireNames) -> AssistantMessage:
    calls = [decode_call(one["id"], one["name"], one["args"], names) for one in message.tool_calls]
    calls += [
        decode_call(one["id"], one["name"] or "", one["args"] or "", names)
        for one in message.invalid_tool_calls
    ]
    return AssistantMessage(text=_text_of(message.content), tool_calls=tuple(calls))


def _said(messages: Sequence[Any], names: WireNames) -> Iterator[Message]:
    for message in messages:
        text = _text_of(message.content)
        match message.type:
            case "human":
                yield UserMessage(text=text)
            case "ai":
                yield _answer(message, names)
            case "tool":
                name = names.decode(message.name or "")
                yield ToolMessage(call_id=message.tool_call_id, name=name, text=text)


def _text_of(content: Any) -> str:
    """The words of a message's content; pictures and files have none."""
    if isinstance(content, str):
        return content
    blocks = [block if isinstance(block, str) else block.get("text", "") for block in content]
    return "".join(blocks)


def _usage(metadata: Mapping[str, Any] | None) -> Usage:
    counted = metadata or {}
    return Usage(
        requests=1,
        prompt_tokens=counted.get("input_tokens", 0),
        cached_tokens=counted.get("input_token_details", {}).get("cache_read", 0),
        completion_tokens=counted.get("output_tokens", 0),
    )


def _model_name(model: Any) -> str:
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or "")


def _thread_id() -> str | None:
    """The conversation, for graphs that keep one."""
    from langgraph.config import get_config

    thread = get_config().get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)


def _bubbles(error: BaseException) -> bool:
    """Whether it is the framework's way to stop for a person, and no error."""
    from langgraph.errors import GraphBubbleUp

    return isinstance(error, GraphBubbleUp)


def _reason(error: BaseException) -> StopReason:
    if not isinstance(error, Exception):
        return "cancelled"
    if _bubbles(error):
        return "deferred"
    return "step_limit" if type(error).__name__ == "GraphRecursionError" else "error"
