"""``ChatCompletions``: an agent behind OpenAI's wire formats."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.agent.agent import Agent
from agentkit.agent.episode_queue import Watched
from agentkit.agent.types import (
    HandedOver,
    RunFinished,
    RunResult,
    ToolProgress,
    TurnFinished,
)
from agentkit.episodes import StopReason
from agentkit.errors import (
    AgentKitError,
    AnsweredBeforeError,
    EpisodeNotKeptError,
    ModelStatusError,
    ModelTimeoutError,
    OtherAgentError,
    RunError,
    StoreError,
)
from agentkit.messages import ToolCall
from agentkit.models.base import ReasoningDelta, TextDelta
from agentkit.models.wire import WireNames
from agentkit.server.chat_answer import Completion, answer_text
from agentkit.server.chat_request import Asked, Reader
from agentkit.server.keys import Keys
from agentkit.server.limits import Bodies, ServerLimits, Slots
from agentkit.server.metrics import Metrics
from agentkit.server.middleware import (
    ClientLeftError,
    Exchange,
    Header,
    RequestError,
    Scope,
    stopping,
    store_unavailable,
)
from agentkit.server.responses import ResponseWriter, read_response_request
from agentkit.server.runs import MinuteLog, Runs
from agentkit.server.work import Work, already_answered, continued_work, followed, new_work
from agentkit.tools.invocation import DepsFactory, made_deps

_LOG = logging.getLogger(__name__)
_BUSY_UPSTREAM = frozenset({429, 503, 529})


CHAT_PATH = "/v1/chat/completions"
RESPONSES_PATH = "/v1/responses"
HEARTBEAT = b": still working\n\n"
_STREAM: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx would collect the pieces
)


AnswerWriter: TypeAlias = Completion | ResponseWriter
"""Writes one answer in its wire format, whole or as the events of a stream."""


class StreamedAnswer:
    """Writes an answer piece by piece; it begins with the first thing there is to say.

    Args:
        exchange: Where it goes.
        writer: Its wire format.
        metrics: Where the wait for the first text is counted.
    """

    def __init__(self, exchange: Exchange, writer: AnswerWriter, metrics: Metrics) -> None:
        self.exchange = exchange
        self._writer = writer
        self._metrics = metrics
        self._began = time.perf_counter()
        self._between = ""
        self._has_text = False
        self._turn = asyncio.Lock()  # so that no piece is cut in two

    @property
    def has_begun(self) -> bool:
        """Whether anything was said; then it is too late for another status."""
        return bool(self.exchange.status)

    async def say(self, text: str) -> None:
        """Send text, and wait until the connection takes it."""
        if not text:
            return
        if not self._has_text:
            self._has_text = True
            self._metrics.time("agentkit_first_text_seconds", time.perf_counter() - self._began)
        text, self._between = self._between + text, ""
        await self._write(self._writer.piece(text))
        await asyncio.sleep(0)  # a model that never waits must not keep others from the loop

    async def think(self, text: str) -> None:
        """Send what the model thinks before it answers."""
        await self._write(self._writer.thought(text))
        await asyncio.sleep(0)

    async def progress(self, tool: str, text: str) -> None:
        """Send how far a tool is."""
        await self._write(self._writer.progress(tool, text))

    def paragraph_ended(self) -> None:
        """Begin a new paragraph: the next text belongs to another turn of the model."""
        self._between = "\n\n"

    async def keep_open(self, seconds: float) -> None:
        """Send a comment every so often, so that proxies keep the stream open; until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            await self._write(HEARTBEAT)

    async def finish(self, result: RunResult, calls: Sequence[ToolCall]) -> None:
        """Send the end of a good answer."""
        await self._write(self._writer.ending(result, calls), more=False)

    async def fail(self, error: RequestError) -> None:
        """End an answer that broke after it had begun, with an error."""
        await self._write(self._writer.failing(error), more=False)

    async def _write(self, piece: bytes, *, more: bool = True) -> None:
        async with self._turn:
            if not self.has_begun:
                await self.exchange.start(200, _STREAM)
                piece = self._writer.opening() + piece
            await self.exchange.send_piece(piece, more=more)


@dataclass(kw_only=True, eq=False)
class ChatCompletions:
    """The endpoints ``/v1/chat/completions`` and ``/v1/responses``.

    Attributes:
        agent: Answers.
        reader: Reads requests.
        runs: What is under way.
        metrics: Where things are counted.
        limits: What is taken on.
        keys: Who may use it, for per-client limits.
        deps_factory: Creates the deps of a run from Starlette's request.
        has_clients: Whether several keys ask, beside those that only approve.
    """

    agent: Agent
    reader: Reader
    runs: Runs
    metrics: Metrics
    limits: ServerLimits
    keys: Keys | None
    deps_factory: DepsFactory | None = None
    has_clients: bool = False

    def __post_init__(self) -> None:
        self.bodies = Bodies(self.limits, self.keys)
        self._places = Slots(
            most=self.limits.max_concurrent,
            each=lambda: self.limits.share(self.keys),
        )
        self._busy: set[str] = set()
        self._log = MinuteLog(_LOG)

    async def answer(self, exchange: Exchange, scope: Scope) -> None:
        """Answer one request."""
        self._check_open()
        body = await self.bodies.of(exchange)
        with self._places.held(exchange.who):  # only now: a body may take its time
            is_chat = exchange.path == CHAT_PATH
            read = self.reader.read if is_chat else partial(read_response_request, self.reader)
            chat_request = read(body, exchange.headers.get("x-session-id"))
            self._check_open()
            work = await self._with_deps(await self._planned(chat_request, exchange), scope)
            with self._claimed(work):
                write = Completion if is_chat else ResponseWriter
                writer = write(
                    episode_id=work.episode_id, model=self.reader.model, asked=chat_request
                )
                await self._deliver(chat_request, work, writer, exchange)

    async def carried_out(self, work: Work, exchange: Exchange, scope: Scope) -> RunResult:
        """What comes of work that another endpoint planned: a run that waited and goes on.

        Raises:
            RequestError: There is no answer.
        """
        self._check_open()
        with self._places.held(exchange.who):
            ready = await self._with_deps(work, scope)
            with self._claimed(ready):
                return await self._outcome(ready, ready.carried_out(self.agent), exchange)

    async def _with_deps(self, work: Work, scope: Scope) -> Work:
        if self.deps_factory is None:
            return work
        from starlette.requests import Request

        return replace(work, deps=await made_deps(self.deps_factory, Request(scope)))

    def _check_open(self) -> None:
        queue = self.agent.queue
        if self.runs.is_draining:
            raise stopping()
        if queue.refuses_runs:
            raise store_unavailable(retry_after=queue.state.retry_after)

    async def _planned(self, chat_request: Asked, exchange: Exchange) -> Work:
        store = self.agent.store
        named = chat_request.session or chat_request.follows
        if named is not None and store is None and not chat_request.answers:
            message = "this server keeps no sessions; send the whole conversation instead"
            raise RequestError(message=message, param="session_id", code="no_sessions")
        try:
            if chat_request.answers:
                return await continued_work(chat_request, exchange, store)
            work = new_work(
                chat_request, exchange, keeps=store is not None, has_clients=self.has_clients
            )
            if chat_request.follows is None or store is None:
                return work
            session_id = await asyncio.to_thread(
                followed, chat_request.follows, store, exchange.key
            )
            return replace(work, session_id=session_id)
        except AgentKitError as error:
            self._log.error("no run begins, the store cannot be read", error)
            raise store_unavailable() from error

    @contextmanager
    def _claimed(self, work: Work) -> Iterator[None]:
        """Two runs at a time cannot both go on with one conversation."""
        claim = work.session_id or work.episode_id
        if claim in self._busy and not work.session_id:
            raise already_answered()
        if claim in self._busy:
            message = "this session's last request is still being answered"
            raise RequestError(status=409, message=message, code="session_busy", retry_after=1)
        self._busy.add(claim)
        try:
            yield
        finally:
            self._busy.discard(claim)

    async def _deliver(
        self, chat_request: Asked, work: Work, writer: AnswerWriter, exchange: Exchange
    ) -> None:
        if chat_request.stream:
            await self._streamed(work, StreamedAnswer(exchange, writer, self.metrics))
            return
        result = await self._outcome(work, work.carried_out(self.agent), exchange)
        body = writer.whole(result, self._text(result), _on_the_wire(result))
        await exchange.answer(body)

    async def _streamed(self, work: Work, stream: StreamedAnswer) -> None:
        beating = asyncio.create_task(stream.keep_open(self.limits.heartbeat_seconds))
        try:
            result = await self._outcome(work, self._pumped(work, stream), stream.exchange)
            beating.cancel()
            await stream.finish(result, _on_the_wire(result))
        except ClientLeftError:
            raise
        except Exception as error:
            beating.cancel()
            failure = error
            if not isinstance(failure, RequestError):
                failure = self._failed(work.episode_id, failure, stream.exchange)
            if not stream.has_begun:
                raise failure from error
            await stream.fail(failure)
        finally:
            beating.cancel()

    async def _pumped(self, work: Work, stream: StreamedAnswer) -> RunResult:
        """Carry out the work and send its text as it comes."""
        if self.agent.output_schema is not None:
            result = await work.carried_out(self.agent)
            await stream.say(self._text(result))
            return result
        async with aclosing(work.streamed(self.agent)) as events:
            async for event in events:
                match event:
                    case TextDelta(text=text):
                        await stream.say(text)
                    case ReasoningDelta(text=text):
                        await stream.think(text)
                    case ToolProgress(tool_name=name, text=text):
                        await stream.progress(name, text)
                    case HandedOver(agent=name):
                        await stream.progress(name, "takes over")
                    case TurnFinished(turn=turn) if turn.message.text:
                        stream.paragraph_ended()
                    case RunFinished(result=result):
                        return result
                    case _:
                        pass
        raise AssertionError("unreachable: a stream ends with RunFinished or raises")

    def _text(self, result: RunResult) -> str:
        return answer_text(result, as_json=self.agent.output_schema is not None)

    async def _outcome(
        self, work: Work, run: Coroutine[Any, Any, RunResult], exchange: Exchange
    ) -> RunResult:
        """The result of a run; its episode is always recorded.

        Raises:
            RequestError: There is no answer.
            ClientLeftError: The client left before the end.
        """
        self.metrics.count("agentkit_runs_started_total")
        seconds = self.limits.request_seconds
        agent = self.agent if work.waiting is None else self.agent.resumed_by(work.waiting)
        with agent.queue.watching(work.episode_id) as episode:
            try:
                # What a person decided is carried out, though who told us of it is gone.
                receive = _for_ever if work.approvals else exchange.receive
                ended = await self.runs.see_through(run, receive=receive, seconds=seconds)
            except asyncio.CancelledError:
                await self._record(work, episode, "cancelled", "CancelledError")
                raise
            except OtherAgentError as error:  # no run began, and the decision is not used up
                raise RequestError(status=409, message=str(error), code="other_agent") from error
            except AnsweredBeforeError as error:  # by another server that shares the store
                raise already_answered() from error
            except Exception as error:
                await self._record(work, episode, "error", f"{type(error).__name__}: {error}")
                failure = self._failed(work.episode_id, error, exchange)
                raise replace(failure, episode_kept=episode.is_kept) from error
            if not isinstance(ended, RunResult):
                await self._record(work, episode, "cancelled", f"cut: {ended}")
                if ended == "disconnected":
                    raise ClientLeftError
                failure = stopping(work.episode_id)
                if ended == "late":
                    failure = RequestError(
                        status=504,
                        message=f"no answer within {seconds:g} s",
                        code="request_timeout",
                        episode_id=work.episode_id,
                    )
                raise replace(failure, episode_kept=episode.is_kept)
        self.metrics.observe(ended.episode)
        if ended.stop_reason == "output_invalid":
            raise RequestError(
                status=502,
                message="the model's answer did not match the agent's schema; the episode holds it",
                code="output_invalid",
                episode_id=work.episode_id,
            )
        return ended

    async def _record(
        self, work: Work, watched: Watched, stop_reason: StopReason, why: str
    ) -> None:
        """See that work that did not end well has an episode: the agent's, if it made one.

        A run that was to go on and did not begin has none, so that its answers can be sent again.
        """
        if watched.episode is None and work.waiting is not None:
            return
        if watched.episode is None:
            await self.agent.queue.put(work.unfinished(self.agent, stop_reason, why))
        assert watched.episode is not None
        self.metrics.observe(watched.episode)

    def _failed(self, episode_id: str, error: Exception, exchange: Exchange) -> RequestError:
        match error:
            case RunError():
                _LOG.warning("episode %s: %s", episode_id, episodes.error_line(error))
                return _model_failed(episode_id, error.__cause__)
            case EpisodeNotKeptError():  # the queue tells the log
                return RequestError(
                    status=503,
                    message="the run ended, but its episode could not be kept yet, so its answer "
                    "is withheld; its tools may have acted, so do not send the request again",
                    code="store_unavailable",
                    episode_id=episode_id,
                )
            case StoreError():
                self._log.error("no run begins, the store cannot be read", error)
                return store_unavailable(episode_id=episode_id)
            case _:
                episodes.log_failure(_LOG, error, "request %s failed", exchange.request_id)
                message = "something unexpected went wrong; the server's log and the episode say it"
                return RequestError(
                    status=500, message=message, code="internal_error", episode_id=episode_id
                )


async def _for_ever() -> Any:
    """What a client says that nobody waits for."""
    await asyncio.Event().wait()


def _model_failed(episode_id: str, cause: BaseException | None) -> RequestError:
    error = RequestError(
        status=502,
        message="the model behind the agent failed; the episode tells how",
        code="model_failed",
        episode_id=episode_id,
    )
    if isinstance(cause, ModelTimeoutError):
        return replace(error, status=504, code="model_timeout")
    if isinstance(cause, ModelStatusError) and cause.status in _BUSY_UPSTREAM:
        wait = max(1, round(cause.retry_after or 1))
        return replace(error, status=503, code="model_overloaded", retry_after=wait)
    return error


def _on_the_wire(result: RunResult) -> tuple[ToolCall, ...]:
    """The calls that are left to the client, under names that every client takes."""
    calls = result.deferred
    names = WireNames(call.name for call in calls)
    return tuple(replace(call, name=names.encode(call.name)) for call in calls)
