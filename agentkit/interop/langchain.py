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
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Annotated, Any, NotRequired, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from agentkit._waiting import wait_for
from agentkit.agent.session import new_episode_id
from agentkit.agent.types import Approval
from agentkit.episodes import StopReason
from agentkit.errors import MissingExtraError
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun, stop_reason
from agentkit.library.library import Library
from agentkit.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from agentkit.models.chat_completions import encode_tool
from agentkit.models.wire import WireNames, decode_call
from agentkit.tools.schema import copied
from agentkit.tools.tool import Tool

T = TypeVar("T")


def require() -> None:
    """Say what to install where LangChain's agents are not there."""
    try:
        import langchain.agents.middleware  # noqa: F401 - asked whether it is there
        import langgraph.types  # noqa: F401 - as above
    except ImportError as error:
        raise MissingExtraError(
            "the adapter for LangChain",
            package="langchain",
            install="pip install langchain langgraph",
        ) from error


def waited(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, for the framework's synchronous half."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return wait_for(coroutine)
    with ThreadPoolExecutor(1) as pool:  # a synchronous graph inside somebody's event loop
        return pool.submit(copy_context().run, wait_for, coroutine).result()


def current_config() -> dict[str, Any]:
    """The configuration of the node of the graph that runs now."""
    from langgraph.config import get_config

    return dict(get_config())


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
    ``ToolPolicy(approve=...)`` asks. Interrupts need a checkpointer, as ever.

    Args:
        toolset: As for ``library_agent``.

    Raises:
        MissingExtraError: langchain or langgraph is not installed.
    """
    require()
    chains()  # from now on LangChain tells of graphs that begin
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
            run, asked = waited(self._runs.asking(request))
            response = handler(asked)
            answered(run, response)
            return response

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            run, asked = await self._runs.asking(request)
            response = await handler(asked)
            answered(run, response)
            return response

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            answer = waited(self._runs.called(request))
            return handler(request) if answer is None else answer

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            answer = await self._runs.called(request)
            return await handler(request) if answer is None else answer

        def after_agent(self, state: Any, runtime: Any) -> None:
            waited(self._runs.finish(state))

        async def aafter_agent(self, state: Any, runtime: Any) -> None:
            await self._runs.finish(state)

    return LibraryMiddleware


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


def ask(made: Mapping[str, Any], tool: Tool) -> Approval:
    """Interrupt the graph, or say what was answered to the interrupt.

    The request has the form of LangChain's own ``tool_approval``; the answer may be in that form,
    or a plain yes or no.

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
        approved = answer.get("type") == "approve"
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
    """A conversation; the application's own instructions are no part of it."""
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
    blocks = [block if isinstance(block, str) else block.get("text", "") for block in content]
    return "".join(blocks)


def usage_of(metadata: Mapping[str, Any] | None) -> Usage:
    """What an answer cost."""
    counted = metadata or {}
    return Usage(
        requests=1,
        prompt_tokens=counted.get("input_tokens", 0),
        cached_tokens=counted.get("input_token_details", {}).get("cache_read", 0),
        completion_tokens=counted.get("output_tokens", 0),
    )


def message_of(result: ToolResult, made: Mapping[str, Any]) -> Any:
    """Our result of a call that LangChain made."""
    from langchain_core.messages import ToolMessage as Answer

    status = "error" if result.status in {"failed", "denied"} else "success"
    return Answer(content=result.text, name=made["name"], tool_call_id=made["id"], status=status)


Ended = Callable[[StopReason, BaseException | None], None]

_LIMITS: dict[str, StopReason] = {"GraphRecursionError": "step_limit"}

_STEP = "graph:step:"
"""How LangGraph's tag of a node begins, as a chain among the chains of callbacks."""


class Chains:
    """Which of LangChain's chains is a part of which, and who waits for the end of one.

    A chain is known by the id that its manager holds. One whose end is never told, such as a stream
    that somebody forgot, is forgotten together with its manager.
    """

    def __init__(self) -> None:
        self._above: WeakKeyDictionary[UUID, tuple[UUID | None, bool]] = WeakKeyDictionary()
        self._waiting: dict[UUID, Ended] = {}

    def expect(self, ended: Ended) -> None:
        """Call ``ended`` when the graph ends whose node runs now."""
        chain = getattr(current_config().get("callbacks"), "parent_run_id", None)
        while chain is not None:
            chain, is_node = self._above.get(chain, (None, False))
            if is_node and chain is not None:
                self._waiting[chain] = ended
                return

    def began(self, chain: UUID, above: UUID | None, tags: Sequence[str]) -> None:
        """A chain has begun, as a part of ``above``."""
        self._above[chain] = (above, any(tag.startswith(_STEP) for tag in tags))

    def ended(self, chain: UUID, error: BaseException | None = None) -> None:
        """A chain has ended.

        One that ends without an error stopped for somebody, unless it has told its answer before.
        """
        self._above.pop(chain, None)
        ended = self._waiting.pop(chain, None)
        if ended is None:
            return
        if error is None or _is_interrupt(error):
            ended("deferred", None)
        else:
            ended(stop_reason(error, _LIMITS), error)


@cache
def chains() -> Chains:
    """The chains of this process; LangChain tells of those that begin after the first call."""
    from langchain_core.tracers.context import register_configure_hook

    known = Chains()
    handler = ContextVar("agentkit_endings", default=_listener(known))  # noqa: B039 - one for all
    register_configure_hook(handler, inheritable=True)
    return known


def _listener(known: Chains) -> Any:
    from langchain_core.callbacks import BaseCallbackHandler

    class Listener(BaseCallbackHandler):
        """Hears of chains, and of nothing else; inline, so that nothing waits for a thread."""

        run_inline = True
        ignore_llm = ignore_chat_model = ignore_retriever = ignore_agent = True
        ignore_custom_event = ignore_retry = True

        def on_chain_start(
            self, *_: Any, run_id: Any, parent_run_id: Any = None, tags: Any = None, **__: Any
        ) -> None:
            known.began(run_id, parent_run_id, tags or ())

        def on_chain_end(self, *_: Any, run_id: Any, **__: Any) -> None:
            known.ended(run_id)

        def on_chain_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
            known.ended(run_id, error)

    return Listener()


def _is_interrupt(error: BaseException) -> bool:
    """Whether it is LangGraph's way to stop for a person, and no error."""
    from langgraph.errors import GraphBubbleUp

    return isinstance(error, GraphBubbleUp)
