"""``ChatCompletions``: ``POST /v1/chat/completions``, an agent behind OpenAI's wire format."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from agentkit.agent.agent import Agent
from agentkit.agent.episode_queue import Watched
from agentkit.agent.types import RunFinished, RunResult, RunStarted, TurnFinished
from agentkit.episodes import StopReason
from agentkit.errors import (
    AgentKitError,
    EpisodeNotKeptError,
    ModelStatusError,
    ModelTimeoutError,
    RunError,
    StoreError,
)
from agentkit.messages import ToolCall
from agentkit.models.base import TextDelta
from agentkit.models.wire import WireNames
from agentkit.server.chat_answer import Completion, StreamedAnswer, answer_text, answered_by
from agentkit.server.chat_request import Asked, Reader
from agentkit.server.keys import Keys
from agentkit.server.limits import Bodies, RateLimiter, ServerLimits, Slots
from agentkit.server.metrics import Measures
from agentkit.server.middleware import (
    SCOPE_KEY,
    Exchange,
    Problem,
    Scope,
    Send,
    invalid,
    not_kept,
    stopping,
    store_unavailable,
)
from agentkit.server.runs import Cut, MinuteLog, Receive, Runs
from agentkit.server.work import Work, already_answered, continued_work, new_work

_LOG = logging.getLogger(__name__)
_BUSY_UPSTREAM = frozenset({429, 503, 529})

CLIENT_LEFT = 499
"""nginx' status for a client that did not wait for the answer; nobody reads it."""


class Outcomes:
    """Sees runs through to their end.

    Args:
        agent: Whose runs they are.
        runs: What is under way.
        measures: Where things are counted.
        seconds: The longest that a run may take.
    """

    def __init__(self, agent: Agent, *, runs: Runs, measures: Measures, seconds: float) -> None:
        self._agent = agent
        self._runs = runs
        self._measures = measures
        self._seconds = seconds
        self._log = MinuteLog(_LOG)

    async def of(
        self, work: Work, run: Coroutine[Any, Any, RunResult], exchange: Exchange
    ) -> RunResult | Problem | None:
        """What came of a run; None when its client left. Its episode is recorded in any case."""
        self._measures.runs.add()
        with self._agent.queue.watching(work.episode_id) as episode:
            try:
                ended = await self._runs.see_through(
                    run, receive=exchange.receive, seconds=self._seconds
                )
            except asyncio.CancelledError:
                await self._record(work, episode, "cancelled", "CancelledError")
                raise
            except Exception as error:  # noqa: BLE001 - logged and recorded; the server serves on
                await self._record(work, episode, "error", f"{type(error).__name__}: {error}")
                problem = self._failed(work, error, exchange)
                return replace(problem, episode_kept=episode.is_kept)
            if isinstance(ended, RunResult):
                self._measures.tell(ended.episode)
                return _unmatched(ended) or ended
            await self._record(work, episode, "cancelled", f"cut: {ended}")
            if ended == "disconnected":
                exchange.status = exchange.status or CLIENT_LEFT
                return None
            return replace(self._cut_short(ended, work), episode_kept=episode.is_kept)

    async def _record(
        self, work: Work, watched: Watched, stop_reason: StopReason, why: str
    ) -> None:
        """See that work that did not end well has an episode: the agent's, if it made one."""
        if watched.episode is None:
            await self._agent.queue.put(work.unfinished(self._agent, stop_reason, why))
        assert watched.episode is not None
        self._measures.tell(watched.episode)

    def _failed(self, work: Work, error: Exception, exchange: Exchange) -> Problem:
        match error:
            case RunError():
                return self._model_failed(work, error)
            case EpisodeNotKeptError():  # the queue tells the log
                return not_kept(work.episode_id)
            case StoreError():
                self._log.error("no run begins, the store can not be read", error)
                return store_unavailable(episode_id=work.episode_id)
            case _:
                _LOG.error("request %s failed", exchange.request_id, exc_info=error)
                return _defect(work.episode_id)

    def _model_failed(self, work: Work, error: RunError) -> Problem:
        _LOG.warning("episode %s: %s", work.episode_id, error)
        problem = Problem(
            status=502,
            message="the model behind the agent failed; the episode tells how",
            code="model_failed",
            episode_id=work.episode_id,
        )
        cause = error.__cause__
        if isinstance(cause, ModelTimeoutError):
            return replace(problem, status=504, code="model_timeout")
        if isinstance(cause, ModelStatusError) and cause.status in _BUSY_UPSTREAM:
            wait = max(1, round(cause.retry_after or 1))
            return replace(problem, status=503, code="model_overloaded", retry_after=wait)
        return problem

    def _cut_short(self, cut: Cut, work: Work) -> Problem:
        if cut == "stopping":
            return stopping(work.episode_id)
        return Problem(
            status=504,
            message=f"no answer within {self._seconds:g} s",
            code="request_timeout",
            episode_id=work.episode_id,
        )


def _unmatched(result: RunResult) -> Problem | None:
    """A structured answer that never matched its schema is no answer."""
    if result.stop_reason != "output_invalid":
        return None
    return Problem(
        status=502,
        message="the model's answer did not match the agent's schema; the episode holds it",
        code="output_invalid",
        episode_id=result.episode.episode_id,
    )


def _defect(episode_id: str) -> Problem:
    return Problem(
        status=500,
        message="something unexpected went wrong; the server's log and the episode tell what",
        code="internal_error",
        episode_id=episode_id,
    )


@contextmanager
def below_caller(headers: Mapping[str, str]) -> Iterator[None]:
    """Spans that begin inside hang below the one that ``traceparent`` names.

    Nothing happens without that header, without OpenTelemetry, and where the server's own
    instrumentation has made a span for the request already.

    Args:
        headers: Headers of the request, names in lower case.
    """
    if "traceparent" not in headers:
        yield
        return
    try:
        from opentelemetry import context, propagate, trace
    except ImportError:
        yield
        return
    if trace.get_current_span().get_span_context().is_valid:
        yield
        return
    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)


class ChatCompletions:
    """The endpoint.

    Args:
        agent: Answers.
        reader: Reads requests.
        runs: What is under way.
        bodies: Reads what is sent.
        measures: Where things are counted.
        limits: What is taken on.
        keys: Who may use it, for the share of each.
        takes_approvals: Whether clients may say that a call which needs approval may run.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        reader: Reader,
        runs: Runs,
        bodies: Bodies,
        measures: Measures,
        limits: ServerLimits,
        keys: Keys | None,
        takes_approvals: bool,
    ) -> None:
        self._agent = agent
        self._reader = reader
        self._runs = runs
        self._bodies = bodies
        self._places = Slots(
            most=limits.max_concurrent,
            each=lambda: limits.share(keys),
            seconds=limits.request_seconds,
        )
        self._measures = measures
        self._limits = limits
        self._takes_approvals = takes_approvals
        self._outcomes = Outcomes(
            agent, runs=runs, measures=measures, seconds=limits.request_seconds
        )
        self._rates = RateLimiter(limits.requests_per_minute)
        self._busy: set[str] = set()
        self._log = MinuteLog(_LOG)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; an ASGI application behind ``Front``."""
        exchange: Exchange = scope[SCOPE_KEY]
        problem = self._not_now() or self._rates.refusal(exchange.key)
        if problem is None:
            with self._runs.entered():
                problem = await self._answer(exchange)
        if problem is not None:
            await exchange.answer_problem(problem)

    def _not_now(self) -> Problem | None:
        if self._runs.is_draining:
            return stopping()
        queue = self._agent.queue
        if queue.refuses_runs:
            return store_unavailable(retry_after=queue.state.retry_after)
        return None

    async def _answer(self, exchange: Exchange) -> Problem | None:
        """Answer, or give the problem if the answer has not begun."""
        body = await self._bodies.of(exchange)
        if body is None:
            exchange.status = CLIENT_LEFT
            return None
        if isinstance(body, Problem):
            return body
        place = self._places.take(exchange.who)  # only now: a body may take its time
        if place is None:
            return self._places.refusal(exchange.who)
        try:
            return await self._answer_to(body, exchange)
        finally:
            self._places.free(exchange.who, place)

    async def _answer_to(self, body: bytes, exchange: Exchange) -> Problem | None:
        asked = self._reader.read(body, exchange.headers.get("x-session-id"))
        if isinstance(asked, Problem) or self._runs.is_draining:
            return asked if isinstance(asked, Problem) else stopping()
        try:
            work = await self._planned(asked, exchange)
        except AgentKitError as error:
            self._log.error("no run begins, the store can not be read", error)
            return store_unavailable()
        if isinstance(work, Problem):
            return work
        claim = work.session_id or work.episode_id
        if claim in self._busy:
            return _conversation_busy() if work.session_id else already_answered()
        parent = below_caller(exchange.headers) if self._agent.tracing else nullcontext()
        with self._claimed(claim), parent:
            return await self._deliver(asked, work, exchange)

    async def _planned(self, asked: Asked, exchange: Exchange) -> Work | Problem:
        if asked.conversation.answers:
            return await continued_work(
                asked, exchange, self._agent.store, takes_approvals=self._takes_approvals
            )
        if asked.session is not None and self._agent.store is None:
            message = "this server keeps no sessions; send the whole conversation instead"
            return invalid(message, param="session_id", code="no_sessions")
        return new_work(asked, exchange)

    @contextmanager
    def _claimed(self, claim: str) -> Iterator[None]:
        """Two runs at a time can not both go on with one conversation."""
        self._busy.add(claim)
        try:
            yield
        finally:
            self._busy.discard(claim)

    async def _deliver(self, asked: Asked, work: Work, exchange: Exchange) -> Problem | None:
        completion = Completion(
            episode_id=work.episode_id,
            model=self._reader.model,
            not_honoured=asked.not_honoured,
            include_usage=asked.include_usage,
        )
        if asked.stream:
            stream = StreamedAnswer(exchange, completion, self._measures)
            return await self._streamed(work, stream)
        result = await self._outcomes.of(work, work.carried_out(self._agent), exchange)
        if not isinstance(result, RunResult):
            return result
        episode = result.episode
        body = completion.whole(result, self._text(result), _on_the_wire(result))
        await exchange.answer_json(
            body, headers=answered_by(episode.library_version, episode.metadata)
        )
        return None

    async def _streamed(self, work: Work, stream: StreamedAnswer) -> Problem | None:
        writing = asyncio.create_task(stream.write(self._limits.heartbeat_seconds))
        try:
            result = await self._outcomes.of(work, self._pumped(work, stream), stream.exchange)
            if isinstance(result, RunResult):
                await stream.finish(result, _on_the_wire(result), writing)
            elif result is None or not stream.has_begun:
                return result
            else:
                await stream.fail(result, writing)
        finally:
            writing.cancel()
        return None

    async def _pumped(self, work: Work, stream: StreamedAnswer) -> RunResult:
        """Carry out the work and send its text as it comes."""
        if work.waiting is not None or self._reader.output_schema is not None:
            result = await work.carried_out(self._agent)
            stream.route(result.episode.library_version, result.episode.metadata)
            await stream.say(self._text(result))
            return result
        events = self._agent.stream(
            work.request,
            session_id=work.session_id,
            history=work.history,
            metadata=work.labels,
            episode_id=work.episode_id,
        )
        async with aclosing(events):
            async for event in events:
                match event:
                    case RunStarted(library_version=version, labels=labels):
                        stream.route(version, labels)
                    case TextDelta(text=text):
                        await stream.say(text)
                    case TurnFinished(turn=turn) if turn.message.text:
                        stream.paragraph_ended()
                    case RunFinished(result=result):
                        return result
                    case _:
                        pass
        raise AssertionError("unreachable: a stream ends with RunFinished or raises")

    def _text(self, result: RunResult) -> str:
        return answer_text(result, as_json=self._reader.output_schema is not None)


def _on_the_wire(result: RunResult) -> tuple[ToolCall, ...]:
    """The calls that are left to the client, under names that every client takes."""
    calls = result.deferred
    names = WireNames(call.name for call in calls)
    return tuple(replace(call, name=names.encode(call.name)) for call in calls)


def _conversation_busy() -> Problem:
    return Problem(
        status=409,
        message="this session's last request is still being answered",
        code="session_busy",
        retry_after=1,
    )
