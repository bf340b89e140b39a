"""One run of an agent: prepare; ask, refine, execute until done; keep the episode."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentkit import (
    agent as agent_door,  # doors: refinement and spans load when they are on
    models as models_door,
    tracing as spans,
)
from agentkit.agent.checks import few_calls, normalize_response
from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.executor import Execution, Executor
from agentkit.agent.selection import SelectedTools, Selection, ToolSelector
from agentkit.agent.session import RunStart, new_episode_id, spent_label, waiting_labels
from agentkit.agent.types import (
    NO_SPAN,
    AskedLater,
    CallsRefined,
    Decision,
    Emit,
    FinishedRun,
    HandedOver,
    Instructions,
    NoSpan,
    Observer,
    RefineSettings,
    RunEvent,
    RunFinished,
    RunResult,
    RunStarted,
    ToolProgress,
    TurnFinished,
    as_approval,
    asks_person,
    deferred_calls,
    ignore,
    tell,
    waiting_calls,
)
from agentkit.episodes import (
    CutReason,
    Episode,
    HistoryTrace,
    ProgramCall,
    RefineTrace,
    RetrievalTrace,
    StopReason,
    Turn,
)
from agentkit.episodes.episode import as_message
from agentkit.episodes.labels import INSTRUCTIONS, INSTRUCTIONS_DIGEST, WAITING_SPENT
from agentkit.errors import (
    EpisodeNotKeptError,
    ModelError,
    ModelResponseError,
    RunError,
    ToolFailed,
    UsageError,
)
from agentkit.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from agentkit.models.base import (
    ChatModel,
    FinishReason,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    StreamingChatModel,
    TextDelta,
    ToolChoice,
    for_model,
)
from agentkit.tools.canonical import same_json
from agentkit.tools.invocation import RunFacts, described, is_tool_error
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from agentkit.agent.delegation import TakesOver
    from agentkit.agent.guardrails import Guardrail, Guardrails
    from agentkit.agent.history import HistoryProcessor, HistoryRun
    from agentkit.agent.output import OutputFormat
    from agentkit.models.prices import Price
    from agentkit.tracing.tracing import Span, Tracing

_CUT: Mapping[FinishReason, CutReason] = {"length": "length", "content_filter": "content_filter"}
_OUTPUT_RETRIES = 2
"""How often a final answer may be sent back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRunner:
    """What all runs of an agent share.

    Attributes:
        name: The agent's name.
        model: Answers.
        queue: Takes episodes to their store.
        instructions: The system message.
        selector: Which tools are offered.
        execution: How calls are run, and the limits.
        refinement: How proposed calls are refined.
        output_format: What the final answer must look like; None for text.
        code_mode: Whether the model calls tools by programs.
        settings: How to generate, where a run does not say.
        price: What tokens cost, where the limit on costs needs it and the model does not say.
        guardrails: Look at what goes in and out.
        history_processors: Decide what of a conversation is sent.
        observers: Are told of each result.
        tracing: Is told of the run and its requests; None for nobody.
    """

    name: str
    model: ChatModel
    queue: EpisodeQueue
    instructions: Instructions
    selector: ToolSelector
    execution: Execution
    refinement: RefineSettings
    output_format: OutputFormat | None
    code_mode: bool
    settings: ModelSettings
    price: Price | None
    guardrails: tuple[Guardrail[Any], ...]
    history_processors: tuple[HistoryProcessor[Any], ...]
    observers: tuple[Observer, ...]
    tracing: Tracing | None

    async def run(self, start: RunStart, answers: DeferredResults | None = None) -> RunResult:
        """Do the work of one run.

        Args:
            start: Where it begins.
            answers: For a resumed run: what its waiting calls are answered with.

        Raises:
            RunError: The model failed for good; carries the episode.
        """
        held = self.instructions.in_library(start.library)
        if held is not None:
            version = {INSTRUCTIONS: held.name, INSTRUCTIONS_DIGEST: held.digest}
            start = replace(start, metadata={**start.metadata, **version})
        begun = self.tracing and spans.run_span(
            self.tracing,
            agent=self.name,
            model=self.model,
            library=start.library,
            episode_id=start.episode_id,
            request=start.request,
            history=start.history,
            instructions=self.instructions.text if held is None else held.text,
            conversation_id=start.session_id,
            resumes=start.resumes,
            wants_json=self.output_format is not None,
            began_ns=start.began_ns,
        )
        with begun or NO_SPAN as span:
            if span.ids:
                start = replace(start, metadata={**start.metadata, **span.ids})
            return await Run(self, start, span).result(answers)


class _SpentAbove(Exception):  # noqa: N818 - ends the run, whose episode tells it
    """A run that asked for this one has reached a limit."""

    def __init__(self, limit: StopReason) -> None:
        self.limit: StopReason = limit


class Run:
    """One run, from where it begins to the episode that it ends as.

    Args:
        agent: What it shares with other runs.
        start: Where it begins.
        span: Is given the episode.
    """

    def __init__(self, agent: AgentRunner, start: RunStart, span: Span | NoSpan) -> None:
        self._agent = agent
        self._start = start
        self._span = span
        self._emit = start.emit
        self._began = time.perf_counter()
        self._at = datetime.now(UTC)
        self._turns: list[Turn] = []
        self._facts = RunFacts(
            deps=start.deps,
            run_id=start.episode_id,
            session_id=start.session_id,
            metadata=start.metadata,
            library_version=start.library.version,
            on_progress=None if start.emit is ignore else _telling(start.emit),
            hand_over=self._hand_over,  # a circle, which ``_ended`` breaks
            limits=start.limits or agent.execution.limits,
            within=start.within,
        )
        self._execution, self._price = agent.execution, agent.price
        if start.limits is not None:
            self._execution = replace(agent.execution, limits=start.limits)
        if start.within is not None and self._price is None and self._facts.bounds_cost:
            self._price = models_door.limit_price(agent.model)
        self._steps_of_others = 0
        self._is_handing_over = False
        self._answered_by: RunResult | None = None
        self._under_way: Callable[[], Turn] | None = None
        self._output_retries = _OUTPUT_RETRIES
        self._guards: Guardrails | None = None
        self._history: HistoryRun | None = None
        if agent.guardrails:
            self._guards = agent_door.Guardrails(agent.guardrails, self._facts)
        if agent.history_processors:
            self._history = agent_door.HistoryRun(agent.history_processors, self._facts)
        self._system: tuple[SystemMessage, ...] = ()
        self._messages: list[Message] = [*start.history]
        if start.request:
            self._messages.append(UserMessage(text=start.request, media=start.media))
        self._messages.extend(start.said)
        self._has_media = bool([one for one in self._messages if one.media])
        if self._has_media:
            said = [one.media for one in self._messages if isinstance(one, UserMessage)]
            self._facts.media = said[-1] if said else ()
        self._selection = Selection(tools=SelectedTools(library=start.library))
        self._executor = self._executor_for(self._selection.tools)
        self._asks_model = False

    async def result(self, answers: DeferredResults | None) -> RunResult:
        """Run until there is an answer, something to wait for, or a limit, and keep the episode."""
        labels = dict(self._start.metadata)
        self._emit(RunStarted(library_version=self._start.library.version, labels=labels))
        try:
            asked, (stop_reason, output) = await self._work(answers)
            self._ended()
        except BaseException as error:
            self._ended()
            if self._guards is not None and isinstance(error, agent_door.RunBlocked):
                return await self._kept("blocked", None, error)
            is_error = is_tool_error(error)
            episode = self._episode("error" if is_error else "cancelled", error)
            await self._agent.queue.put(episode)
            if is_error and not isinstance(error, Exception):  # it would end the event loop
                raise RuntimeError(
                    f"code of yours raised {described(error)} in the run {episode.episode_id}; "
                    "raise an Exception instead"
                ) from error
            if isinstance(error, ModelError) and self._asks_model:
                name = self._agent.model.name
                raise RunError(f"the model {name!r} failed: {error}", episode=episode) from error
            raise
        result = await self._kept(stop_reason, output)
        if self._agent.observers:
            finished = FinishedRun(
                result=result,
                library=self._start.library,
                model=self._agent.model,
                request=asked,
                refinement=self._agent.refinement,
                ends_loop=self._start.ends_loop,
            )
            tell(self._agent.observers, finished)
        return result

    def _ended(self) -> None:
        self._facts.is_over = True
        self._facts.hand_over = None

    async def _kept(
        self, stop_reason: StopReason, output: Any, error: BaseException | None = None
    ) -> RunResult:
        """The result of a run whose episode is kept."""
        form = self._agent.output_format
        if form is None or stop_reason != "finished":
            episode = self._episode(stop_reason, error, output=output)
        else:
            episode = self._episode(stop_reason, output=form.to_data(output))
        unkept = await self._agent.queue.put(episode)
        goes_on = isinstance(unkept, EpisodeNotKeptError)
        if unkept is not None and not (goes_on and self._agent.queue.on_failure != "refuse_runs"):
            raise unkept
        start = self._start
        result = RunResult(
            output=output,
            episode=episode,
            messages=tuple(self._messages) if error is None or self._turns else start.history,
            is_kept=unkept is None,
        )
        self._emit(RunFinished(result=result))
        return result

    async def _work(
        self, answers: DeferredResults | None
    ) -> tuple[ModelRequest | None, tuple[StopReason, Any]]:
        """Prepare, then take turns; gives the first request, if somebody wants it, and the end."""
        if answers is not None:
            executor = self._executor_for(SelectedTools.whole(self._start.library))
            self._under_way = lambda: answers.so_far(executor)
            self._add(await answers.turn(executor))
        if self._guards is not None and self._start.request:
            request, _ = await self._guards.check("input", self._start.request)
            self._start = replace(self._start, request=request)
            place = len(self._start.history)
            self._messages[place] = UserMessage(text=request, media=self._start.media)
        self._selection = await self._agent.selector.select(
            self._start.request,
            self._start.library,
            history=self._start.history,
            shown=self._start.shown,
            emit=self._emit,
        )
        self._spend(self._selection.usage)
        self._executor = self._executor_for(self._selection.tools)
        text = await self._agent.instructions.for_run(self._facts, self._start.library)
        self._system = (SystemMessage(text=text),) if text else ()
        self._asks_model = True
        if self._history is not None:
            self._selection.tools.add_own(self._history.tools)
        asked = await self._request() if self._agent.observers and answers is None else None
        end = None
        if self._turns:
            self._executor.remember(self._turns[-1].results)
            end = self._end(self._turns[-1])
            if self._answered_by is not None:
                end = self._end(await self._turn_of(self._answered_by))
        try:
            while end is None:
                end = self._end(await self._take_turn())
                if self._answered_by is not None:
                    end = self._end(await self._turn_of(self._answered_by))
        except _SpentAbove as spent:
            end = spent.limit, None
        return asked, end

    async def _take_turn(self) -> Turn:
        """Ask the model, refine its calls, run them."""
        started = time.perf_counter()
        response, trace = await self._propose()
        model_seconds = time.perf_counter() - started
        message, executor = response.message, self._executor
        self._under_way = lambda: Turn(
            message=message,
            results=tuple(executor.finished),
            tokens=response.tokens,
            program_calls=executor.calls_of(),
        )
        results = await executor.execute(message.tool_calls) if message.tool_calls else ()
        searches: tuple[RetrievalTrace, ...] = ()
        changes: tuple[HistoryTrace, ...] = ()
        usage = response.usage
        if trace is not None:
            usage += trace.usage
        if self._selection.search is not None:
            searches, spent = self._selection.search.taken()
            usage += self._spend(spent)
        if self._history is not None:
            changes, spent = self._history.taken()
            usage += self._spend(spent)
        turn = Turn(
            message=message,
            results=results,
            usage=usage,
            retrieval=None if self._turns else self._selection.trace,
            searches=searches,
            refine=trace,
            tokens=response.tokens,
            finish_reason=_CUT.get(response.finish_reason),
            history=changes,
            program_calls=executor.calls_of() if results and executor.program_calls else (),
            seconds=time.perf_counter() - started,
            model_seconds=model_seconds,
        )
        self._add(turn)
        return turn

    async def _hand_over(self, agent: TakesOver) -> RunResult:
        """Have another agent answer in place of this one; see ``Agent.handoff``.

        Raises:
            ToolFailed: It is asked already, or had the conversation before.
            RunError: Its model failed.
        """
        chain = (*self._start.chain, self._agent)
        if self._is_handing_over or any(agent.is_run_by(one) for one in chain):
            raise ToolFailed(
                f"{agent.name} did not take over: it had this conversation before, and a "
                "conversation is handed on only; answer yourself, or say what is missing"
            )
        self._is_handing_over = True
        spent, said = len(self._turns) + self._steps_of_others, self._messages
        own, most = agent.limits, self._execution.limits.max_steps
        start = replace(
            self._start,
            said=tuple(said[len(self._start.history) + bool(self._start.request) :]),
            chain=chain,
            metadata=agent_door.linked_labels(
                self._facts, {agent_door.HANDED_OVER_BY: self._agent.name}
            ),
            limits=replace(own, max_steps=max(1, min(own.max_steps, most - spent - 1))),
            within=self._facts,
            emit=self._emit if self._emit is ignore else self._emit_of_other,
            session_id=None,
            resumes=None,
            ends_loop=False,
            episode_id=new_episode_id(),
            began_ns=time.time_ns(),
        )
        self._emit(HandedOver(agent=agent.name, run_id=start.episode_id))
        try:
            result = await agent.take_over(start)
            self._count(result.episode)
        except RunError as error:
            self._count(error.episode)
            raise
        finally:
            self._is_handing_over = False
        if result.stop_reason == "finished":
            self._is_handing_over = True  # its answer ends the run
            self._answered_by = result
        return result

    def _count(self, of_other: object) -> None:
        """Count the steps of an agent that took over."""
        if isinstance(of_other, Episode):
            self._steps_of_others += len(of_other.turns)

    def _emit_of_other(self, event: RunEvent) -> None:
        """Show what an agent that took over does; its answer, where there are guardrails, later."""
        match event:
            case RunStarted() | RunFinished():
                return
            case TextDelta() if self._guards is not None:
                return
            case TurnFinished(turn=turn) if not turn.message.tool_calls:
                return  # the answer, which is a turn of this run as well
        self._emit(event)

    async def _turn_of(self, answer: RunResult) -> Turn:
        """The answer of the agent that took over, as the last turn of this run."""
        self._answered_by, self._is_handing_over = None, False
        response = ModelResponse(message=AssistantMessage(text=answer.text))
        if self._guards is not None:
            response = await self._guarded_output(self._guards, response)
            self._emit(TextDelta(text=response.message.text))
        turn = Turn(message=response.message)
        self._add(turn)
        return turn

    async def _propose(self) -> tuple[ModelResponse, RefineTrace | None]:
        request = await self._request()
        if self._guards is None:
            response = self._normal(await self._ask(request))
        else:
            response = await self._guarded_answer(self._guards, request)
        if self._agent.refinement.mode == "none" or not response.message.tool_calls:
            return response, None
        response, trace = await agent_door.refine_calls(
            self._ask, request, response, self._agent.refinement
        )
        self._emit(CallsRefined(trace=trace))
        return self._normal(response), trace

    async def _guarded_answer(self, guards: Guardrails, request: ModelRequest) -> ModelResponse:
        """The answer that guardrails let through; nothing of it is shown before."""
        beside = bool(self._start.request) and not self._turns
        if beside and guards.has("input", beside_model=True):
            looking = asyncio.create_task(
                guards.check("input", self._start.request, beside_model=True)
            )
            asking = asyncio.create_task(self._ask(request))
            try:
                await asyncio.wait({looking, asking}, return_when=asyncio.FIRST_EXCEPTION)
                await looking
                asked = await asking
            finally:
                looking.cancel()
                asking.cancel()
                await asyncio.gather(looking, asking, return_exceptions=True)
        else:
            asked = await self._ask(request)
        response = self._normal(asked)
        if not response.message.tool_calls and guards.has("output"):
            response = await self._guarded_output(guards, response)
        if self._emit is not ignore and response.message.text:
            self._emit(TextDelta(text=response.message.text))
        return response

    async def _guarded_output(self, guards: Guardrails, response: ModelResponse) -> ModelResponse:
        """The answer as guardrails let it pass; one that does not fit the format is no output."""
        form, value, problem = self._agent.output_format, response.message.text, ""
        if form is not None:
            value, problem = form.parse(response.message.text)
        if problem:
            return response
        self._under_way = lambda: Turn(message=response.message, usage=response.usage)
        checked, _ = await guards.check("output", value)
        if checked is value:
            return response
        text = (
            str(checked) if form is None else json.dumps(form.to_data(checked), ensure_ascii=False)
        )
        return replace(response, message=replace(response.message, text=text))

    def _normal(self, response: ModelResponse) -> ModelResponse:
        normal = normalize_response(
            response.message, self._turns, has_programs=self._agent.code_mode
        )
        return replace(response, message=normal)

    async def _ask(self, request: ModelRequest, refinement: int = 0) -> ModelResponse:
        """Ask once, where a run that asked for this one has something left of its limits."""
        if self._facts.within is None:
            return await self._asked(request, refinement)
        async with self._facts.turn_to_ask():
            if (limit := self._facts.within.reached()) is not None:
                raise _SpentAbove(limit)
            return await self._asked(request, refinement)

    async def _asked(self, request: ModelRequest, refinement: int) -> ModelResponse:
        """Ask once; the direct question is streamed where somebody listens."""
        is_shown = self._emit is not ignore and self._guards is None  # or else when checked
        model, listens = self._agent.model, is_shown and not refinement
        streams = listens and isinstance(model, StreamingChatModel)
        tracing = self._agent.tracing
        begun = tracing and spans.chat_span(
            tracing,
            model,
            request,
            conversation_id=self._start.session_id,
            refinement=refinement,
            streams=streams,
        )
        with begun or NO_SPAN as span:
            if streams and isinstance(model, StreamingChatModel):
                response = await self._streamed(model, request, span)
            else:
                response = await model.complete(request)
            message = few_calls(response.message)
            if message is not response.message:
                response = replace(response, message=message)
            usage = self._spend(response.usage)
            if usage is not response.usage:
                response = replace(response, usage=usage)
            span.value = response
        if listens and not streams and response.message.text:
            self._emit(TextDelta(text=response.message.text))
        return response

    def _spend(self, usage: Usage) -> Usage:
        """Count model use; with its price, where a limit needs it and the model does not say."""
        if self._price is not None and usage.cost_usd is None:
            usage = replace(usage, cost_usd=self._price.cost_of(usage))
        self._facts.spend(usage)
        return usage

    async def _streamed(
        self, model: StreamingChatModel, request: ModelRequest, span: Span | NoSpan
    ) -> ModelResponse:
        final: ModelResponse | None = None
        async for event in model.stream(request):
            if isinstance(event, ModelResponse):
                final = event
                continue
            if span.first_text_ns is None:
                span.first_text_ns = time.time_ns()
            self._emit(event)
        if final is None:
            raise ModelResponseError(
                f"the stream of {model.name!r} ended without a response; a StreamingChatModel "
                "yields the whole ModelResponse last"
            )
        return final

    def _add(self, turn: Turn) -> None:
        """Record a complete turn and show its results to the model."""
        self._under_way = None
        self._turns.append(turn)
        self._messages.append(turn.message)
        for result in turn.results:
            self._messages.append(as_message(result))
            self._has_media = self._has_media or bool(result.media)
        if self._selection.search is not None:
            given = (result.value for result in turn.results if result.status == "ok")
            self._selection.search.results.extend(given)
        self._emit(TurnFinished(turn=turn))

    def _end(self, turn: Turn) -> tuple[StopReason, Any] | None:
        """Why the run ends after a turn, and with which output; None when it goes on."""
        if any(result.status == "deferred" for result in turn.results):
            return "deferred", None
        if not turn.message.tool_calls:
            answer = self._answer(turn.message.text)
            if answer is not None:
                return answer
        steps = len(self._turns) + self._steps_of_others
        limit = self._facts.reached(steps)
        return None if limit is None else (limit, None)

    def _answer(self, text: str) -> tuple[StopReason, Any] | None:
        """The finished run, or None when the answer was sent back for another try."""
        if self._agent.output_format is None:
            return "finished", text
        value, problem = self._agent.output_format.parse(text)
        if not problem:
            return "finished", value
        if self._output_retries <= 0:
            return "output_invalid", None
        self._output_retries -= 1
        correction = f"{problem} Answer again with JSON that matches the schema, and nothing else."
        self._turns[-1] = replace(self._turns[-1], correction=correction)
        self._messages.append(UserMessage(text=correction))
        return None

    async def _request(self) -> ModelRequest:
        agent, start, tools = self._agent, self._start, self._executor.tools
        said: Sequence[Message] = self._messages
        if self._history is not None:
            said = await self._history.sent(said)
        if self._has_media:
            said = for_model(said, agent.model)
        search = self._selection.search
        finds = search is not None and tools.for_programs is None  # what is found, is offered
        return ModelRequest(
            messages=(*self._system, *said),
            tools=tools.definitions,
            tool_choice=self._tool_choice(),
            output_schema=agent.output_format.schema if agent.output_format else None,
            settings=start.settings.over(agent.settings) if start.settings else agent.settings,
            examples=agent.selector.examples,
            searched=search.found_in(said) if search is not None else {},
            searchable=tools.library.definitions if finds else (),
        )

    def _tool_choice(self) -> ToolChoice:
        """A forced call is forced once; a model that read that no call is left must answer."""
        last = self._turns[-1].results if self._turns else ()
        is_told = any(one.failure and one.failure.kind == "limit_exceeded" for one in last)
        has_none_left = any(one.calls_left == 0 for one in self._facts.lineage)
        if (is_told and has_none_left) or not self._selection.tools.definitions:
            return "none"
        choice = self._agent.execution.policy.choice
        return "auto" if choice == "required" and self._turns else choice

    def _executor_for(self, tools: SelectedTools) -> Executor:
        executor = Executor(
            shared=self._execution,
            tools=tools,
            said=self._start.history,
            emit=self._emit,
            run=self._facts,
            guardrails=self._guards,
        )
        if self._agent.code_mode:
            tools.for_programs = agent_door.signature
            examples = self._agent.selector.examples
            tools.add_own((agent_door.program_tool(executor, examples=examples),))
        return executor

    def _episode(
        self, stop_reason: StopReason, error: BaseException | None = None, *, output: Any = None
    ) -> Episode:
        """The record of the run as it stands; a turn that was interrupted comes last."""
        start = self._start
        turns = self._turns if self._under_way is None else [*self._turns, self._under_way()]
        self._span.value = episode = Episode(
            episode_id=start.episode_id,
            request=start.request,
            media=start.media,
            turns=tuple(turns),
            stop_reason=stop_reason,
            output=output,
            model=self._agent.model.name,
            library_version=start.library.version,
            session_id=start.session_id,
            history_length=len(start.history),
            resumes=start.resumes,
            usage=self._facts.usage,
            started_at=self._at.isoformat(timespec="milliseconds"),
            seconds=time.perf_counter() - self._began,
            error=None if error is None else described(error),
            metadata=dict(start.metadata),
            guardrails=() if self._guards is None else tuple(self._guards.records),
        )
        if stop_reason == "deferred":
            waits = waiting_labels(self._agent.name, start.library, deferred_calls(episode))
            whole = start.within if start.resumes and start.within else self._facts
            waits[WAITING_SPENT] = spent_label(whole, episode)
            self._span.value = episode = replace(episode, metadata={**episode.metadata, **waits})
        return episode


@dataclass(frozen=True, kw_only=True)
class DeferredResults:
    """What is known now of the calls that a run waited for.

    Attributes:
        episode: The run; it stopped as ``deferred``.
        approvals: Decisions by call id; an approved call is still to be run.
        values: Results by call id.

    Raises:
        UsageError: Nothing waits, a waiting call got no answer, an id is unknown, a decision is
            none, or a value is for a call that waits for a decision.
    """

    episode: Episode
    approvals: Mapping[str, Decision]
    values: Mapping[str, object]
    _found: dict[str, ToolResult] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        # Whoever gives values need not be the person who decides: those calls wait on.
        waits_on = bool(self.values) and not self.approvals
        _check_answers(self.episode, self.approvals.keys() | self.values.keys(), waits_on=waits_on)
        for call, result in waiting_calls(self.episode):
            if call.call_id in self.values and asks_person(result):
                raise UsageError(
                    f"the call {call.call_id} ({call.name}) waits for a person's decision, and a "
                    f"value is none; give approvals={{{call.call_id!r}: True}} to run it, or "
                    "Approval(approved=False, reason=...) to refuse it in words for the model"
                )
        for decision in self.approvals.values():
            as_approval(decision)

    async def turn(self, executor: Executor) -> Turn:
        """The waiting turn with its results.

        Args:
            executor: Runs approved calls; its ``approve`` is replaced by the decisions.
        """
        ask = executor.approve
        shown = {call.call_id: call.arguments for call, _ in waiting_calls(self.episode)}

        def decide(call: ToolCall, tool: Tool) -> Decision | Awaitable[Decision]:
            if call.call_id in self.approvals:
                said = as_approval(self.approvals[call.call_id])
                if said.approved and not same_json(call.arguments, shown[call.call_id]):
                    raise AskedLater  # a guardrail rewrites it otherwise now
                return said
            if ask is None:  # a program that goes on has come to another call
                raise AskedLater
            return ask(call, tool)

        executor.approve = decide
        for call, _ in waiting_calls(self.episode):
            if call.call_id in self.values:
                found = await executor.answered(call, self.values[call.call_id])
                self._found[call.call_id] = found
        await asyncio.sleep(0)  # whoever was cancelled while the answers were recorded ends here
        executor.remember([*self._known, *(one.result for one in self._replayed.values())])
        executor.replayed = self._replayed
        known = {result.call_id for result in self._known}
        calls = self.episode.turns[-1].message.tool_calls
        await executor.execute([call for call in calls if call.call_id not in known])
        return self.so_far(executor)

    def so_far(self, executor: Executor) -> Turn:
        """The turn with those results that there are, also where running a call was broken off."""
        results = {result.call_id: result for result in (*self._known, *executor.finished)}
        turn, known = self.episode.turns[-1], {result.call_id for result in self._known}
        calls = [call.call_id for call in turn.message.tool_calls]
        before = (one for one in turn.program_calls if one.program in known)
        return replace(
            turn,
            results=tuple(results[call_id] for call_id in calls if call_id in results),
            program_calls=(*before, *executor.calls_of()),
            usage=Usage(),  # the waiting run has paid for it
            seconds=0.0,
            model_seconds=0.0,
        )

    @cached_property
    def _known(self) -> Sequence[ToolResult]:
        """Results from before, and those that were found outside this process."""
        turn = self.episode.turns[-1]
        before = [one for one in turn.results if one.status != "deferred"]
        calls = {call.call_id for call in turn.message.tool_calls}
        return [*before, *(one for one in self._found.values() if one.call_id in calls)]

    @cached_property
    def _replayed(self) -> Mapping[str, ProgramCall]:
        """What the programs that go on called before, and what was found for them since."""
        known = {}
        for one in self.episode.turns[-1].program_calls:
            if one.call.call_id in self._found:
                known[one.call.call_id] = replace(one, result=self._found[one.call.call_id])
            elif one.result.status != "deferred":
                known[one.call.call_id] = one
        return known


def _check_answers(episode: Episode, given: set[str], *, waits_on: bool) -> None:
    waiting = waiting_calls(episode)
    ids = {call.call_id for call, _ in waiting}
    if not ids:
        raise UsageError(
            f"episode {episode.episode_id} stopped as {episode.stop_reason!r}; no call waits in it"
        )
    open_calls = [(call, result) for call, result in waiting if call.call_id not in given]
    if missing := [one for one, result in open_calls if not (waits_on and asks_person(result))]:
        calls = ", ".join(f"{call.call_id} ({call.name})" for call in missing)
        raise UsageError(
            f"these calls still wait: {calls}; give each one a decision in approvals= "
            "or a result in values="
        )
    if unknown := sorted(given - ids):
        raise UsageError(f"no call waits under {unknown}; waiting are {sorted(ids)}")


def _telling(emit: Emit) -> Callable[[str, str, str], None]:
    """Emits what tools say of their progress, from whichever thread, on this event loop."""
    loop = asyncio.get_running_loop()

    def tell(call_id: str, tool_name: str, text: str) -> None:
        event = ToolProgress(call_id=call_id, tool_name=tool_name, text=text)
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(emit, event)

    return tell


async def stream_events(
    run: Callable[[Emit], Coroutine[Any, Any, object]],
) -> AsyncGenerator[RunEvent, None]:
    """Start ``run`` and yield what it emits; its exception is raised after the last event.

    Closing the iterator cancels the run and waits until it has recorded itself.
    """
    queue: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    task = asyncio.create_task(run(queue.put_nowait))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
