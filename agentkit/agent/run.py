"""One run, turn by turn: ask the model, refine its calls, execute them, look at the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.agent.executor import Executor
from agentkit.agent.output import OutputFormat, OutputProblem, normalize_response
from agentkit.agent.refine import RefineSettings, refine
from agentkit.agent.selection import ToolSearch
from agentkit.agent.types import (
    CallsRefined,
    Emit,
    Limits,
    TurnFinished,
    ignore,
)
from agentkit.episodes import CutReason, RefineTrace, RetrievalTrace, StopReason, Turn
from agentkit.errors import ModelResponseError
from agentkit.messages import (
    Message,
    ToolMessage,
    Usage,
    UserMessage,
)
from agentkit.models.base import (
    ChatModel,
    FinishReason,
    ModelRequest,
    ModelResponse,
    StreamingChatModel,
    TextDelta,
    ToolChoice,
)

_CUT: Mapping[FinishReason, CutReason] = {"length": "length", "content_filter": "content_filter"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        stop_reason: Why.
        output: The answer as the caller gets it; None when there is none.
    """

    stop_reason: StopReason
    output: Any = None


@dataclass(kw_only=True)
class Loop:
    """The state of one run.

    Attributes:
        model: Answers.
        request: The template of each request: schema and settings. The tools are those that
            ``executor`` offers.
        executor: Runs the calls.
        messages: The conversation so far; grows.
        limits: When to stop.
        refinement: How proposals are refined.
        refiner: Gives the model to ask in the rounds of one refinement; None asks ``model``.
        output_format: What the final answer must look like; None for text.
        output_retries: How often a final answer may be sent back.
        retrieval: How the offered tools were found; recorded in the first turn.
        search: The model's own searches for tools; None when it can not search.
        emit: Receives events.
        turns: Complete turns; grows.
        usage: Sum over all turns; grows.
    """

    model: ChatModel
    request: ModelRequest
    executor: Executor
    messages: list[Message]
    limits: Limits
    refinement: RefineSettings
    refiner: Callable[[], ChatModel] | None = None
    output_format: OutputFormat | None = None
    output_retries: int = 2
    retrieval: RetrievalTrace | None = None
    search: ToolSearch | None = None
    emit: Emit = ignore
    turns: list[Turn] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    _proposed: ModelResponse | None = field(init=False, default=None)

    def first_request(self) -> ModelRequest:
        """What the model is going to be asked first; to be called before ``run``."""
        return self._request()

    async def run(self, *, answered: Turn | None = None) -> Outcome:
        """Take turns until there is an answer, something to wait for, or a limit.

        Args:
            answered: For a resumed run: the turn that waited, with its results.

        Raises:
            ModelError: The model failed for good. ``turns`` holds what was complete by then.
        """
        outcome: Outcome | None = None
        if answered is not None:
            self._add(answered)
            self.executor.remember(answered.results)
            outcome = self._outcome(answered)
        while outcome is None:
            outcome = self._outcome(await self._take_turn())
        return outcome

    @property
    def interrupted(self) -> Turn | None:
        """The turn that was under way, with the results there were; None between turns."""
        if self._proposed is None:
            return None
        answer = self._proposed
        results = tuple(self.executor.finished)
        return Turn(message=answer.message, results=results, tokens=answer.tokens)

    def _add(self, turn: Turn) -> None:
        """Record a complete turn and show its results to the model."""
        self._proposed = None
        self.turns.append(turn)
        self.usage += turn.usage
        self.messages.append(turn.message)
        self.messages.extend(
            ToolMessage(call_id=result.call_id, name=result.name, text=result.text)
            for result in turn.results
        )
        self.emit(TurnFinished(turn=turn))

    async def _take_turn(self) -> Turn:
        started = time.perf_counter()
        response, trace = await self._propose()
        model_seconds = time.perf_counter() - started
        self._proposed = response
        calls = response.message.tool_calls
        results = await self.executor.execute(calls) if calls else ()
        searches, searching = self.search.taken() if self.search else ((), Usage())
        turn = Turn(
            message=response.message,
            results=results,
            usage=response.usage + (trace.usage if trace else Usage()) + searching,
            retrieval=None if self.turns else self.retrieval,
            searches=searches,
            refine=trace,
            tokens=response.tokens,
            finish_reason=_CUT.get(response.finish_reason),
            seconds=time.perf_counter() - started,
            model_seconds=model_seconds,
        )
        self._add(turn)
        return turn

    async def _propose(self) -> tuple[ModelResponse, RefineTrace | None]:
        request = self._request()
        response = await self._complete(request)
        response = replace(response, message=normalize_response(response.message, self.turns))
        if self.refinement.mode == "none" or not response.message.tool_calls:
            return response, None
        refiner = self.model if self.refiner is None else self.refiner()
        response, trace = await refine(refiner, request, response, self.refinement)
        self.emit(CallsRefined(trace=trace))
        return replace(response, message=normalize_response(response.message, self.turns)), trace

    def _request(self) -> ModelRequest:
        return replace(
            self.request,
            messages=tuple(self.messages),
            tools=self.executor.tools.definitions,
            deferred=self.executor.tools.deferred,
            tool_choice=self._tool_choice(),
        )

    def _tool_choice(self) -> ToolChoice:
        """A forced call is forced once; after that the model must be able to answer."""
        forced = self.request.tool_choice == "required" and bool(self.turns)
        return "auto" if forced else self.request.tool_choice

    async def _complete(self, request: ModelRequest) -> ModelResponse:
        if self.emit is ignore or not isinstance(self.model, StreamingChatModel):
            response = await self.model.complete(request)
            if response.message.text:
                self.emit(TextDelta(text=response.message.text))
            return response
        final: ModelResponse | None = None
        async for event in self.model.stream(request):
            if isinstance(event, TextDelta):
                self.emit(event)
            else:
                final = event
        if final is None:
            raise ModelResponseError(
                f"the stream of {self.model.name!r} ended without a response; a StreamingChatModel "
                "yields the whole ModelResponse last"
            )
        return final

    def _outcome(self, turn: Turn) -> Outcome | None:
        if any(result.status == "deferred" for result in turn.results):
            return Outcome(stop_reason="deferred")
        if not turn.message.tool_calls:
            answer = self._answer(turn.message.text)
            if answer is not None:
                return answer
        limit = self.limits.reached(steps=len(self.turns), usage=self.usage)
        return None if limit is None else Outcome(stop_reason=limit)

    def _answer(self, text: str) -> Outcome | None:
        """The finished run, or None when the answer was sent back for another try."""
        if self.output_format is None:
            return Outcome(stop_reason="finished", output=text)
        value = self.output_format.parse(text)
        if not isinstance(value, OutputProblem):
            return Outcome(stop_reason="finished", output=value)
        if self.output_retries <= 0:
            return Outcome(stop_reason="output_invalid")
        self.output_retries -= 1
        correction = (
            f"{value.text} Answer again with JSON that matches the schema, and nothing else."
        )
        self.turns[-1] = replace(self.turns[-1], correction=correction)
        self.messages.append(UserMessage(text=correction))
        return None
