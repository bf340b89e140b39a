"""``AgentRunner``: one run of an agent, from where it begins to the episode that it ends as."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, cast

from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.executor import ExecutionPolicy, Executor
from agentkit.agent.output import OutputFormat
from agentkit.agent.refine import RefineSettings
from agentkit.agent.run import Loop, Outcome
from agentkit.agent.selection import SelectedTools, Selection, ToolSelector
from agentkit.agent.session import RunStart
from agentkit.agent.types import (
    Approval,
    Decision,
    Emit,
    FinishedRun,
    Observers,
    RunEvent,
    RunFinished,
    RunResult,
    RunStarted,
    deferred_calls,
)
from agentkit.episodes import Episode, StopReason, Turn
from agentkit.errors import EpisodeNotKeptError, ModelError, RunError, UsageError
from agentkit.messages import Message, SystemMessage, ToolCall, ToolResult, Usage, UserMessage
from agentkit.models.base import (
    ChatModel,
    ModelRequest,
    ModelSettings,
    ToolChoice,
)
from agentkit.tools.invocation import encode_result
from agentkit.tools.tool import Tool
from agentkit.tracing.tracer import RunOperation
from agentkit.tracing.tracing import Tracing, traced_model


@dataclass(frozen=True, kw_only=True)
class DeferredResults:
    """What is known now of the calls that a run waited for.

    Attributes:
        episode: The run; it stopped as ``deferred``.
        approvals: Decisions by call id; an approved call is still to be run.
        values: Results by call id.

    Raises:
        UsageError: Nothing waits, a waiting call got no answer, or an id is unknown.
    """

    episode: Episode
    approvals: Mapping[str, Decision]
    values: Mapping[str, object]

    def __post_init__(self) -> None:
        given = self.approvals.keys() | self.values.keys()
        _check_answers(self.episode, deferred_calls(self.episode), given)

    async def turn(self, executor: Executor) -> Turn:
        """The waiting turn with its results.

        Args:
            executor: Runs approved calls; its ``approve`` is replaced by the decisions.
        """

        def decide(call: ToolCall, tool: Tool) -> Decision:  # noqa: ARG001 - an Approver gets both
            return self.approvals.get(call.call_id, Approval(approved=False))

        executor.approve = decide
        waiting = deferred_calls(self.episode)
        executor.remember([*self._before, *self._given])
        await executor.execute([call for call in waiting if call.call_id not in self.values])
        return self.so_far(executor)

    def so_far(self, executor: Executor) -> Turn:
        """The turn with those results that there are, also where running a call was broken off."""
        known = [*self._before, *self._given, *executor.finished]
        results = {result.call_id: result for result in known}
        turn = self.episode.turns[-1]
        calls = [call.call_id for call in turn.message.tool_calls]
        return replace(
            turn,
            results=tuple(results[call_id] for call_id in calls if call_id in results),
            usage=Usage(),  # the waiting run has paid for it
            seconds=0.0,
            model_seconds=0.0,
        )

    @property
    def _before(self) -> Sequence[ToolResult]:
        results = self.episode.turns[-1].results
        return [result for result in results if result.status != "deferred"]

    @cached_property
    def _given(self) -> Sequence[ToolResult]:
        """Results that were found outside this process."""
        waiting = deferred_calls(self.episode)
        return [
            _answered(call, self.values[call.call_id])
            for call in waiting
            if call.call_id in self.values
        ]


def _check_answers(episode: Episode, waiting: tuple[ToolCall, ...], given: set[str]) -> None:
    ids = {call.call_id for call in waiting}
    if not ids:
        raise UsageError(
            f"episode {episode.episode_id} stopped as {episode.stop_reason!r}; no call waits in it"
        )
    if missing := [call for call in waiting if call.call_id not in given]:
        calls = ", ".join(f"{call.call_id} ({call.name})" for call in missing)
        raise UsageError(
            f"these calls still wait: {calls}; give each one a decision in approvals= "
            "or a result in values="
        )
    if unknown := sorted(given - ids):
        raise UsageError(f"no call waits under {unknown}; waiting are {sorted(ids)}")


def _answered(call: ToolCall, value: object) -> ToolResult:
    data, text = encode_result(value)
    return ToolResult(call_id=call.call_id, name=call.name, status="ok", value=data, text=text)


@dataclass(kw_only=True)
class Recorder:
    """Makes the episode of one run.

    Attributes:
        start: Where the run began.
        model: The model's name.
        queue: Takes the episode to its store.
    """

    start: RunStart
    model: str
    queue: EpisodeQueue
    _began: float = field(init=False, default_factory=time.perf_counter)
    _at: datetime = field(init=False, default_factory=lambda: datetime.now(UTC))

    def episode(
        self, loop: Loop, outcome: Outcome, *, data: Any = None, error: BaseException | None = None
    ) -> Episode:
        """The record of the run as it stands; a turn that was interrupted comes last."""
        start = self.start
        turns = loop.turns if loop.interrupted is None else [*loop.turns, loop.interrupted]
        return Episode(
            episode_id=start.episode_id,
            request=start.request,
            turns=tuple(turns),
            stop_reason=outcome.stop_reason,
            output=data,
            model=self.model,
            library_version=start.library.version,
            session_id=start.session_id,
            history_length=len(start.history),
            resumes=start.resumes,
            usage=loop.usage,
            started_at=self._at.isoformat(timespec="milliseconds"),
            seconds=time.perf_counter() - self._began,
            error=None if error is None else f"{type(error).__name__}: {error}".rstrip(": "),
            metadata=dict(start.metadata),
        )

    async def keep(self, episode: Episode) -> Exception | None:
        """Hand the episode to the store; see ``EpisodeQueue.put``."""
        return await self.queue.put(episode)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRunner:
    """What all runs of an agent share. A run itself is a ``RunStart`` and a ``Loop``.

    Attributes:
        name: The agent's name.
        model: Answers.
        queue: Takes episodes to their store.
        instructions: The system message; empty for none.
        selector: Which tools are offered.
        execution: How calls are run, and the limits.
        refinement: How proposed calls are refined.
        output_format: What the final answer must look like; None for text.
        tool_choice: Whether the model may, must not or must call a tool.
        settings: How to generate, where a run does not say.
        observers: Are told of each result.
        tracing: Is told of the run and its requests; None for nobody.
    """

    name: str
    model: ChatModel
    queue: EpisodeQueue
    instructions: str
    selector: ToolSelector
    execution: ExecutionPolicy
    refinement: RefineSettings
    output_format: OutputFormat | None
    tool_choice: ToolChoice
    settings: ModelSettings
    observers: Observers
    tracing: Tracing | None

    async def run(self, start: RunStart, answers: DeferredResults | None = None) -> RunResult:
        """Do the work of one run, inside its span if somebody traces.

        Args:
            start: Where it begins.
            answers: For a resumed run: what its waiting calls are answered with.

        Raises:
            RunError: The model failed for good; carries the episode.
        """
        if self.tracing is None:
            return await self._answer(start, answers)
        with self.tracing.span(self._operation(start), at_ns=start.began_ns) as span:
            start = replace(start, metadata={**start.metadata, **span.ids})
            try:
                result = await self._answer(start, answers)
            except RunError as error:
                span.value = cast("Episode", error.episode)
                raise
            span.value = result.episode
        return result

    def _operation(self, start: RunStart) -> RunOperation:
        return RunOperation(
            agent=self.name,
            model=self.model,
            episode_id=start.episode_id,
            request=start.request,
            history=start.history,
            instructions=self.instructions,
            library=start.library,
            conversation_id=start.session_id,
            resumes=start.resumes,
            wants_json=self.output_format is not None,
        )

    async def _answer(self, start: RunStart, answers: DeferredResults | None) -> RunResult:
        start.emit(RunStarted(library_version=start.library.version, labels=start.metadata))
        recorder = Recorder(start=start, model=self.model.name, queue=self.queue)
        if answers is not None:
            start = replace(start, answered=await self._answered(start, answers, recorder))
        loop = self._loop(start, await self._selection(start, recorder))
        asked = loop.first_request() if self.observers and start.answered is None else None
        outcome = await self._outcome(loop, recorder, start)
        episode = recorder.episode(loop, outcome, data=self._as_data(outcome))
        unkept = await recorder.keep(episode)
        if unkept is not None and not self._goes_on(unkept):
            raise unkept
        said = loop.messages[1:] if self.instructions else loop.messages
        result = RunResult(
            output=outcome.output, episode=episode, messages=tuple(said), is_kept=unkept is None
        )
        start.emit(RunFinished(result=result))
        if self.observers:
            self.observers.tell(self._finished(start, asked, result))
        return result

    async def _outcome(self, loop: Loop, recorder: Recorder, start: RunStart) -> Outcome:
        """How the loop ends; where it breaks, what happened until then is kept."""
        try:
            return await loop.run(answered=start.answered)
        except ModelError as error:
            episode = recorder.episode(loop, Outcome(stop_reason="error"), error=error)
            await recorder.keep(episode)
            message = f"the model {self.model.name!r} failed: {error}"
            raise RunError(message, episode=episode) from error
        except asyncio.CancelledError as error:
            await recorder.keep(
                recorder.episode(loop, Outcome(stop_reason="cancelled"), error=error)
            )
            raise
        except Exception as error:  # a defect of a model
            await recorder.keep(recorder.episode(loop, Outcome(stop_reason="error"), error=error))
            raise

    def _as_data(self, outcome: Outcome) -> Any:
        if self.output_format is None or outcome.stop_reason != "finished":
            return outcome.output
        return self.output_format.to_data(outcome.output)

    def _finished(
        self, start: RunStart, asked: ModelRequest | None, result: RunResult
    ) -> FinishedRun:
        return FinishedRun(
            result=result,
            library=start.library,
            model=self.model,
            request=asked,
            refinement=self.refinement,
            ends_loop=start.ends_loop,
        )

    async def _answered(
        self, start: RunStart, answers: DeferredResults, recorder: Recorder
    ) -> Turn:
        """The turn that waited; where its calls are broken off, what they gave is kept."""
        executor = self._executor(start, SelectedTools.whole(start.library))
        try:
            return await answers.turn(executor)
        except BaseException as error:
            await self._keep_broken(start, recorder, error, turns=[answers.so_far(executor)])
            raise

    async def _selection(self, start: RunStart, recorder: Recorder) -> Selection:
        """The tools for this run."""
        # Of a DeferringChatModel; asking isinstance of a protocol takes a tenth of the whole run.
        defers = bool(getattr(self.model, "defers_tools", False))
        try:
            return await self.selector.select(
                start.request,
                start.library,
                history=start.history,
                shown=start.shown,
                emit=start.emit,
                defers=defers,
            )
        except BaseException as error:  # a retriever's; the run has begun, and is kept as one
            turns = [] if start.answered is None else [start.answered]
            await self._keep_broken(start, recorder, error, turns=turns)
            raise

    async def _keep_broken(
        self, start: RunStart, recorder: Recorder, error: BaseException, *, turns: Sequence[Turn]
    ) -> None:
        """Keep a run that ends before the model is asked."""
        loop = self._loop(start, Selection(tools=SelectedTools(library=start.library)))
        loop.turns.extend(turns)
        reason: StopReason = "error" if isinstance(error, Exception) else "cancelled"
        await recorder.keep(recorder.episode(loop, Outcome(stop_reason=reason), error=error))

    def _goes_on(self, unkept: Exception) -> bool:
        """Whether the caller gets the result of a run whose episode is not kept yet."""
        waits = isinstance(unkept, EpisodeNotKeptError)
        return waits and self.queue.on_failure != "refuse_runs"

    def _loop(self, start: RunStart, selection: Selection) -> Loop:
        model, refiner = self._asked(start)
        return Loop(
            model=model,
            refiner=refiner,
            request=self._template(start, selection),
            executor=self._executor(start, selection.tools),
            messages=self._opening(start),
            limits=self.execution.limits,
            refinement=self.refinement,
            output_format=self.output_format,
            retrieval=selection.trace,
            search=selection.search,
            usage=selection.usage,
            emit=start.emit,
        )

    def _executor(self, start: RunStart, tools: SelectedTools) -> Executor:
        return self.execution.executor(start.library, tools, said=start.history, emit=start.emit)

    def _asked(self, start: RunStart) -> tuple[ChatModel, Callable[[], ChatModel] | None]:
        """The model that answers, and what gives the one for a refinement."""
        if self.tracing is None:
            return self.model, None
        traced = partial(traced_model, self.model, self.tracing, conversation_id=start.session_id)
        return traced(), partial(traced, refines=True)

    def _template(self, start: RunStart, selection: Selection) -> ModelRequest:
        """What all requests of the run have in common."""
        return ModelRequest(
            messages=(),
            tool_choice=self.tool_choice if selection.tools.is_usable else "none",
            output_schema=self.output_format.schema if self.output_format else None,
            settings=start.settings.over(self.settings) if start.settings else self.settings,
        )

    def _opening(self, start: RunStart) -> list[Message]:
        """What the model reads first."""
        opening: list[Message] = [*start.history]
        if self.instructions:
            opening.insert(0, SystemMessage(text=self.instructions))
        if start.request:
            opening.append(UserMessage(text=start.request))
        return opening


async def stream_events(
    run: Callable[[Emit], Coroutine[Any, Any, object]],
) -> AsyncGenerator[RunEvent, None]:
    """RunStart ``run`` and yield what it emits; its exception is raised after the last event.

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
