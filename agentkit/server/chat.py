"""``ChatCompletions``: ``POST /v1/chat/completions``, an agent behind OpenAI's wire format."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import replace

from agentkit.agent.agent import Agent
from agentkit.agent.types import RunFinished, RunResult, RunStarted, TurnFinished
from agentkit.errors import AgentKitError
from agentkit.messages import ToolCall
from agentkit.models.base import TextDelta
from agentkit.models.wire import WireNames
from agentkit.server.asked import Asked, Reader
from agentkit.server.completion import Completion, answer_text, answered_by
from agentkit.server.exchange import SCOPE_KEY, Exchange, Scope, Send
from agentkit.server.limits import ServerLimits
from agentkit.server.measures import Measures
from agentkit.server.outcome import CLIENT_LEFT, Outcomes
from agentkit.server.parents import below_caller
from agentkit.server.problem import Problem, invalid, stopping, store_unavailable
from agentkit.server.rates import RateLimiter
from agentkit.server.runs import Receive, Runs
from agentkit.server.slots import Bodies, Slots
from agentkit.server.store_health import MinuteLog
from agentkit.server.streamed import StreamedAnswer
from agentkit.server.work import Work, already_answered, continued_work, new_work

_LOG = logging.getLogger(__name__)


class ChatCompletions:
    """The endpoint.

    Args:
        agent: Answers.
        reader: Reads requests.
        runs: What is under way.
        bodies: Reads what is sent.
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
        bodies: Bodies,
        measures: Measures,
        limits: ServerLimits,
        takes_approvals: bool,
    ) -> None:
        self._agent = agent
        self._reader = reader
        self._runs = runs
        self._bodies = bodies
        self._places = Slots(
            most=limits.max_concurrent, each=limits.share, seconds=limits.request_seconds
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
        problem = self._not_now() or self._too_often(exchange)
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

    def _too_often(self, exchange: Exchange) -> Problem | None:
        wait = self._rates.wait(exchange.key)
        if not wait:
            return None
        rate = self._limits.requests_per_minute
        message = f"more than {rate:g} requests a minute with this key; wait {wait} s"
        return Problem(status=429, message=message, code="rate_limit_exceeded", retry_after=wait)

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
            settings=work.settings,
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
