"""``Running``: one run of an agent, from where it begins to the episode that it ends as."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from agentkit.agent.choosing import Choosing
from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.executor import ExecutionPolicy
from agentkit.agent.loop import Loop, Outcome
from agentkit.agent.output import OutputFormat
from agentkit.agent.recording import Recorder, Start
from agentkit.agent.refine import RefineSettings
from agentkit.agent.resuming import Answers
from agentkit.agent.selection import Offer, Offering
from agentkit.agent.types import (
    Emit,
    FinishedRun,
    Observers,
    RunEvent,
    RunFinished,
    RunResult,
    RunStarted,
)
from agentkit.episodes import Episode, StopReason, Turn
from agentkit.errors import EpisodeNotKeptError, ModelError, RunError
from agentkit.messages import Message, SystemMessage, UserMessage
from agentkit.models.base import (
    ChatModel,
    ModelRequest,
    ModelSettings,
    ToolChoice,
)
from agentkit.tracing.tracer import RunOperation
from agentkit.tracing.tracing import Tracing, traced_model


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """What all runs of an agent share. A run itself is a ``Start`` and a ``Loop``.

    Attributes:
        name: The agent's name.
        model: Answers.
        queue: Takes episodes to their store.
        instructions: The system message; empty for none.
        choosing: Which tools are offered.
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
    choosing: Choosing
    execution: ExecutionPolicy
    refinement: RefineSettings
    output_format: OutputFormat | None
    tool_choice: ToolChoice
    settings: ModelSettings
    observers: Observers
    tracing: Tracing | None

    async def run(self, start: Start, answers: Answers | None = None) -> RunResult:
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

    def _operation(self, start: Start) -> RunOperation:
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

    async def _answer(self, start: Start, answers: Answers | None) -> RunResult:
        start.emit(RunStarted(library_version=start.library.version, labels=start.metadata))
        recorder = Recorder(start=start, model=self.model.name, queue=self.queue)
        if answers is not None:
            start = replace(start, answered=await self._answered(start, answers, recorder))
        loop = self._loop(start, await self._offering(start, recorder))
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

    async def _outcome(self, loop: Loop, recorder: Recorder, start: Start) -> Outcome:
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

    def _finished(self, start: Start, asked: ModelRequest | None, result: RunResult) -> FinishedRun:
        return FinishedRun(
            result=result,
            library=start.library,
            model=self.model,
            request=asked,
            refinement=self.refinement,
            ends_loop=start.ends_loop,
        )

    async def _answered(self, start: Start, answers: Answers, recorder: Recorder) -> Turn:
        """The turn that waited; where its calls are broken off, what they gave is kept."""
        executor = self._executor(start, Offer.whole(start.library))
        try:
            return await answers.turn(executor)
        except BaseException as error:
            await self._keep_broken(start, recorder, error, turns=[answers.so_far(executor)])
            raise

    async def _offering(self, start: Start, recorder: Recorder) -> Offering:
        """The tools for this run."""
        # Of a DeferringChatModel; asking isinstance of a protocol takes a tenth of the whole run.
        defers = bool(getattr(self.model, "defers_tools", False))
        try:
            return await self.choosing.offering(start, defers=defers)
        except BaseException as error:  # a retriever's; the run has begun, and is kept as one
            turns = [] if start.answered is None else [start.answered]
            await self._keep_broken(start, recorder, error, turns=turns)
            raise

    async def _keep_broken(
        self, start: Start, recorder: Recorder, error: BaseException, *, turns: Sequence[Turn]
    ) -> None:
        """Keep a run that ends before the model is asked."""
        loop = self._loop(start, Offering(offer=Offer(library=start.library)))
        loop.turns.extend(turns)
        reason: StopReason = "error" if isinstance(error, Exception) else "cancelled"
        await recorder.keep(recorder.episode(loop, Outcome(stop_reason=reason), error=error))

    def _goes_on(self, unkept: Exception) -> bool:
        """Whether the caller gets the result of a run whose episode is not kept yet."""
        waits = isinstance(unkept, EpisodeNotKeptError)
        return waits and self.queue.on_failure != "refuse_runs"

    def _loop(self, start: Start, offering: Offering) -> Loop:
        model, refiner = self._asked(start)
        return Loop(
            model=model,
            refiner=refiner,
            request=self._template(start, offering),
            executor=self._executor(start, offering.offer),
            messages=self._opening(start),
            limits=self.execution.limits,
            refinement=self.refinement,
            output_format=self.output_format,
            retrieval=offering.trace,
            search=offering.search,
            usage=offering.usage,
            emit=start.emit,
        )

    def _executor(self, start: Start, offer: Offer) -> Executor:
        return self.execution.executor(
            start.library, offer, said=start.history, emit=start.emit
        )

    def _asked(self, start: Start) -> tuple[ChatModel, Callable[[], ChatModel] | None]:
        """The model that answers, and what gives the one for a refinement."""
        if self.tracing is None:
            return self.model, None
        traced = partial(traced_model, self.model, self.tracing, conversation_id=start.session_id)
        return traced(), partial(traced, refines=True)

    def _template(self, start: Start, offering: Offering) -> ModelRequest:
        """What all requests of the run have in common."""
        return ModelRequest(
            messages=(),
            tool_choice=self.tool_choice if offering.offer.is_usable else "none",
            output_schema=self.output_format.schema if self.output_format else None,
            settings=start.settings.over(self.settings) if start.settings else self.settings,
        )

    def _opening(self, start: Start) -> list[Message]:
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
