"""``ChatCompletions``: ``POST /v1/chat/completions``, an agent behind OpenAI's wire format."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from agentkit.agent.agent import Agent
from agentkit.agent.events import RunFinished, TurnFinished
from agentkit.agent.result import RunResult
from agentkit.episodes import Episode, StopReason
from agentkit.errors import (
    AgentKitError,
    ModelStatusError,
    ModelTimeoutError,
    RunError,
    StoreError,
)
from agentkit.messages import ToolCall
from agentkit.models.base import TextDelta
from agentkit.models.wire.names import WireNames
from agentkit.server.asked import Asked, Reader
from agentkit.server.completion import Completion, answer_text
from agentkit.server.exchange import SCOPE_KEY, Exchange, Scope, Send
from agentkit.server.limits import ServerLimits
from agentkit.server.measures import Measures
from agentkit.server.parents import below_caller
from agentkit.server.problem import Problem, invalid
from agentkit.server.rates import RateLimiter
from agentkit.server.runs import Cut, Receive, Runs
from agentkit.server.streamed import StreamedAnswer
from agentkit.server.work import Work, already_answered, continued_work, new_work

_LOG = logging.getLogger(__name__)
_BUSY_UPSTREAM = frozenset({429, 503, 529})

CLIENT_LEFT = 499
"""nginx' status for a client that did not wait for the answer; nobody reads it."""


class ChatCompletions:
    """The endpoint.

    Args:
        agent: Answers.
        reader: Reads requests.
        runs: What is under way.
        measures: Where things are counted.
        limits: What is taken on.
        takes_approvals: Whether clients may say that a call which needs approval may run.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        reader: Reader,
        runs: Runs,
        measures: Measures,
        limits: ServerLimits,
        takes_approvals: bool,
    ) -> None:
        self._agent = agent
        self._reader = reader
        self._runs = runs
        self._measures = measures
        self._limits = limits
        self._takes_approvals = takes_approvals
        self._rates = RateLimiter(limits.requests_per_minute)
        self._busy: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; an ASGI application behind ``Front``."""
        exchange: Exchange = scope[SCOPE_KEY]
        problem = self._not_now() or self._too_often(exchange)
        if problem is None:
            with self._runs.entered():
                problem = await self._answer(exchange)
        if problem is not None:
            await exchange.answer_problem(problem)

    def _not_now(self) -> Problem | None:
        if self._runs.is_draining:
            return _stopping()
        if self._runs.is_full:
            return Problem(
                status=503,
                message=f"{self._limits.max_concurrent} requests are being answered already",
                code="overloaded",
                retry_after=1,
            )
        return None

    def _too_often(self, exchange: Exchange) -> Problem | None:
        wait = self._rates.wait(exchange.key)
        if not wait:
            return None
        rate = self._limits.requests_per_minute
        message = f"more than {rate:g} requests a minute with this key; wait {wait} s"
        return Problem(status=429, message=message, code="rate_limit_exceeded", retry_after=wait)

    async def _answer(self, exchange: Exchange) -> Problem | None:
        """Answer, or give the problem if the answer has not begun."""
        body = await exchange.body(
            most=self._limits.max_body_bytes, seconds=self._limits.body_seconds
        )
        if body is None:
            exchange.status = CLIENT_LEFT
            return None
        asked = (
            body
            if isinstance(body, Problem)
            else self._reader.read(body, exchange.headers.get("x-session-id"))
        )
        if isinstance(asked, Problem) or self._runs.is_draining:
            return asked if isinstance(asked, Problem) else _stopping()
        try:
            work = await self._planned(asked, exchange)
        except AgentKitError:
            _LOG.exception("request %s: the store can not be read", exchange.request_id)
            return _store_unavailable(None)
        if isinstance(work, Problem):
            return work
        claim = work.session_id or work.episode_id
        if claim in self._busy:
            return _conversation_busy() if work.session_id else already_answered()
        parent = below_caller(exchange.headers) if self._agent.is_traced else nullcontext()
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
        result = await self._ended(work, work.carried_out(self._agent), exchange)
        if not isinstance(result, RunResult):
            return result
        body = completion.whole(result, self._text(result), _on_the_wire(result))
        await exchange.answer_json(body)
        return None

    async def _streamed(self, work: Work, stream: StreamedAnswer) -> Problem | None:
        writing = asyncio.create_task(stream.write(self._limits.heartbeat_seconds))
        try:
            result = await self._ended(work, self._pumped(work, stream), stream.exchange)
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
            await stream.say(self._text(result))
            return result
        events = self._agent.stream(
            work.request,
            session_id=work.session_id,
            history=work.history,
            metadata=work.labels,
            settings=work.settings,
            episode_id=work.episode_id,
        )
        async with aclosing(events):
            async for event in events:
                match event:
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

    async def _ended(
        self, work: Work, run: Coroutine[Any, Any, RunResult], exchange: Exchange
    ) -> RunResult | Problem | None:
        """What came of a run; None when its client left. Its episode is kept in any case."""
        self._measures.runs.add()
        try:
            ended = await self._runs.see_through(
                run, receive=exchange.receive, seconds=self._limits.request_seconds
            )
        except RunError as error:
            return await self._model_failed(work, error)
        except asyncio.CancelledError:
            await self._keep(work, "cancelled", "CancelledError")
            raise
        except StoreError:
            _LOG.exception("request %s: the store failed", exchange.request_id)
            await self._keep(work, "error", "StoreError")
            return _store_unavailable(work.episode_id)
        except Exception as error:  # noqa: BLE001 - logged and kept; the server serves on
            _LOG.exception("request %s failed", exchange.request_id)
            await self._keep(work, "error", f"{type(error).__name__}: {error}")
            return _defect(work.episode_id)
        if isinstance(ended, RunResult):
            self._measures.kept.add(by=0 if self._agent.store is None else 1)
            self._measures.tell(ended.episode)
            return _unmatched(ended) or ended
        await self._keep(work, "cancelled", f"cut: {ended}")
        if ended == "disconnected":
            exchange.status = exchange.status or CLIENT_LEFT
        return self._cut_short(ended, work)

    async def _keep(self, work: Work, stop_reason: StopReason, why: str) -> None:
        """See that the store has an episode of work that did not end well.

        The agent has kept it unless the work ended before the model was asked.
        """
        store = self._agent.store
        episode = work.unfinished(self._agent, stop_reason, why)
        if store is not None:
            try:
                known = await asyncio.shield(asyncio.to_thread(store.get, work.episode_id))
                if known is None:
                    await asyncio.shield(asyncio.to_thread(store.append, episode))
            except AgentKitError:
                _LOG.exception("episode %s is not kept", work.episode_id)
                self._measures.not_kept.add()
            else:
                episode = known or episode
                self._measures.kept.add()
        self._measures.tell(episode)

    async def _model_failed(self, work: Work, error: RunError) -> Problem:
        _LOG.warning("episode %s: %s", work.episode_id, error)
        if isinstance(error.episode, Episode):
            self._measures.kept.add(by=0 if self._agent.store is None else 1)
            self._measures.tell(error.episode)
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

    def _cut_short(self, cut: Cut, work: Work) -> Problem | None:
        match cut:
            case "disconnected":
                return None
            case "stopping":
                return _stopping(work.episode_id)
            case "late":
                return Problem(
                    status=504,
                    message=f"no answer within {self._limits.request_seconds:g} s",
                    code="request_timeout",
                    episode_id=work.episode_id,
                )


def _on_the_wire(result: RunResult) -> tuple[ToolCall, ...]:
    """The calls that are left to the client, under names that every client takes."""
    calls = result.deferred
    names = WireNames(call.name for call in calls)
    return tuple(replace(call, name=names.encode(call.name)) for call in calls)


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


def _stopping(episode_id: str | None = None) -> Problem:
    return Problem(
        status=503,
        message="the server is about to stop; another one may take the request",
        code="stopping",
        retry_after=1,
        episode_id=episode_id,
        headers=((b"connection", b"close"),),
    )


def _conversation_busy() -> Problem:
    return Problem(
        status=409,
        message="this session's last request is still being answered",
        code="session_busy",
        retry_after=1,
    )


def _store_unavailable(episode_id: str | None) -> Problem:
    return Problem(
        status=503,
        message="the store of episodes is not available, so no answer was given",
        code="store_unavailable",
        retry_after=5,
        episode_id=episode_id,
    )


def _defect(episode_id: str) -> Problem:
    return Problem(
        status=500,
        message="something unexpected went wrong; the server's log and the episode tell what",
        code="internal_error",
        episode_id=episode_id,
    )
