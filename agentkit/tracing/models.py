"""Models and retrievers that tell of each request, as wrappers: without a tracer there is none."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from agentkit.library.library import Library
from agentkit.models.base import (
    ChatModel,
    ModelEvent,
    ModelRequest,
    ModelResponse,
)
from agentkit.models.retries import RETRYING, Attempt
from agentkit.retrieval.retriever import Retrieval, Retriever
from agentkit.tracing.guarded import OpenSpan, Tracing
from agentkit.tracing.operations import ChatOperation, RetrievalOperation, Retry


class TracedModel:
    """A model whose requests are told, each as a ``ChatOperation``.

    Args:
        model: Answers.
        tracing: Is told.
        conversation_id: Conversation that the requests belong to.
        refines: Whether the requests are rounds of refinement, which are counted.
    """

    def __init__(
        self,
        model: ChatModel,
        tracing: Tracing,
        *,
        conversation_id: str | None = None,
        refines: bool = False,
    ) -> None:
        self._model = model
        self._tracing = tracing
        self._conversation_id = conversation_id
        self._round = 0 if refines else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)  # what else a model can do, it still can

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request."""
        with self._span(request, streams=False) as span:
            told = RETRYING.set(_noting(span))
            try:
                response = await self._model.complete(request)
            finally:
                RETRYING.reset(told)
            span.value = response
        return response

    def _span(self, request: ModelRequest, *, streams: bool) -> OpenSpan:
        if self._round is not None:
            self._round += 1
        operation = ChatOperation(
            model=self._model,
            request=request,
            conversation_id=self._conversation_id,
            refinement=self._round or 0,
            streams=streams,
        )
        return self._tracing.span(operation)


class TracedStreamingModel(TracedModel):
    """The same for a model that can stream."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the answer as it arrives.

        The span is active while the next piece is waited for, and not while whoever reads the
        stream has it: a generator shares the context of its reader.
        """
        span = self._span(request, streams=True)
        error: BaseException | None = None
        try:
            async with aclosing(cast("Any", self._model).stream(request)) as pieces:
                while (event := await _next(pieces, span)) is not None:
                    if isinstance(event, ModelResponse):
                        span.value = event
                    elif span.first_text_ns is None:
                        span.first_text_ns = time.time_ns()
                    yield event
        except BaseException as raised:
            error = raised
            raise
        finally:
            span.end(error)


async def _next(pieces: AsyncIterator[ModelEvent], span: OpenSpan) -> ModelEvent | None:
    span.activate()
    told = RETRYING.set(_noting(span))
    try:
        return await anext(pieces, None)
    finally:
        RETRYING.reset(told)
        span.deactivate()


def _noting(span: OpenSpan) -> Attempt:
    def note(error: BaseException, failures: int, delay_seconds: float) -> None:
        retry = Retry(
            error=error, failures=failures, delay_seconds=delay_seconds, at_ns=time.time_ns()
        )
        span.retries.append(retry)

    return note


def traced_model(
    model: ChatModel,
    tracing: Tracing,
    *,
    conversation_id: str | None = None,
    refines: bool = False,
) -> ChatModel:
    """The model with its requests told; it streams if ``model`` does."""
    streams = hasattr(model, "stream")  # asking for the protocol takes 30 microseconds
    kind = TracedStreamingModel if streams else TracedModel
    return kind(model, tracing, conversation_id=conversation_id, refines=refines)


class TracedRetriever:
    """A retriever whose searches are told.

    Args:
        retriever: Searches.
        tracing: Is told.
    """

    def __init__(self, retriever: Retriever, tracing: Tracing) -> None:
        self._retriever = retriever
        self._tracing = tracing

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """Search once."""
        with self._tracing.span(RetrievalOperation(query=query, library=library)) as span:
            span.value = found = await self._retriever.retrieve(query, library)
        return found
