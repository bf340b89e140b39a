"""``Tracing``: a tracer as the agent uses it, whose errors stay out of the run."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast

from agentkit.errors import UsageError
from agentkit.library.library import Library
from agentkit.messages import ToolCall
from agentkit.models.base import (
    ChatModel,
    ModelEvent,
    ModelRequest,
    ModelResponse,
)
from agentkit.models.retries import RETRYING, Attempt
from agentkit.retrieval.retriever import Retrieval, Retriever
from agentkit.tools.tool import Tool
from agentkit.tracing.tracer import (
    ChatOperation,
    ChildOperation,
    ChildResult,
    ChildSpans,
    Operation,
    Outcome,
    RetrievalOperation,
    Retry,
    Span,
    Tracer,
    Value,
)

if TYPE_CHECKING:
    from agentkit.composites.guards import TracedCall


logger = logging.getLogger(__name__)

T = TypeVar("T")


class OpenSpan:
    """An operation that goes on; a context manager around the work.

    What the work gives is put into ``value`` before the block is left; what it raises is seen on
    the way out. Where the block is left in pieces, as by a generator, ``active`` guards the pieces.

    Attributes:
        value: See ``Outcome.value``.
        retries: See ``Outcome.retries``; grows.
        first_text_ns: See ``Outcome.first_text_ns``.
    """

    __slots__ = ("_span", "_token", "_tracing", "first_text_ns", "retries", "value")

    def __init__(self, tracing: Tracing, span: Span | None) -> None:
        self._tracing = tracing
        self._span = span
        self._token: object = None
        self.value: Value = None
        self.retries: list[Retry] = []
        self.first_text_ns: int | None = None

    @property
    def span(self) -> Span | None:
        """The tracer's own span; None when it could not make one."""
        return self._span

    @property
    def ids(self) -> Mapping[str, str]:
        """Labels by which the operation is found again."""
        span = self._span
        return {} if span is None else self._tracing.safely(lambda: dict(span.ids)) or {}

    def __enter__(self) -> Self:
        self.activate()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.deactivate()
        self.end(error)

    def activate(self) -> None:
        """Make this the parent of what begins from now on in this context."""
        if self._span is not None:
            self._token = self._tracing.safely(self._span.activate)

    def deactivate(self) -> None:
        """Undo ``activate``."""
        token, self._token = self._token, None
        span = self._span
        if span is not None and token is not None:
            self._tracing.safely(lambda: span.deactivate(token))

    def end(self, error: BaseException | None = None, *, at_ns: int | None = None) -> None:
        """Tell the tracer what came of it."""
        span = self._span
        if span is None:
            return
        outcome = Outcome(
            value=self.value,
            error=error,
            retries=tuple(self.retries),
            first_text_ns=self.first_text_ns,
        )
        self._tracing.safely(lambda: span.end(outcome, at_ns=at_ns))


class Tracing:
    """Tells a tracer, and keeps its errors from the run.

    Args:
        tracer: Is told.

    Raises:
        UsageError: It is no tracer.

    Attributes:
        errors: How often it raised. The first time is logged with the lines of code that led to
            it, then each time that the count doubles; never with the message of the exception.
    """

    def __init__(self, tracer: Tracer) -> None:
        if isinstance(tracer, type) or not callable(getattr(tracer, "start", None)):
            shown = tracer.__name__ if isinstance(tracer, type) else type(tracer).__name__
            raise UsageError(
                f"{shown} is no tracer: it has to be an object with a method start, such as "
                "OpenTelemetryTracing(), which takes OpenTelemetry's own as tracer_provider"
            )
        self._tracer = tracer
        self.errors = 0

    @property
    def child_spans(self) -> ChildSpans:
        """Which calls inside composites are told."""
        return self.safely(lambda: self._tracer.child_spans) or "off"

    def span(
        self, operation: Operation, *, at_ns: int | None = None, parent: OpenSpan | None = None
    ) -> OpenSpan:
        """An operation begins; the arguments are those of ``Tracer.start``."""
        above = None if parent is None else parent.span
        span = self.safely(lambda: self._tracer.start(operation, at_ns=at_ns, parent=above))
        return OpenSpan(self, span)

    def safely(self, work: Callable[[], T]) -> T | None:
        """What ``work`` of the tracer gives; None when it raises, which is counted and logged."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - whatever a tracer raises, the run goes on
            self._failed(error)
            return None

    def tell(
        self,
        operation: Operation,
        value: Value = None,
        *,
        error: BaseException | None = None,
        began_ns: int | None = None,
        ended_ns: int | None = None,
        parent: OpenSpan | None = None,
    ) -> OpenSpan:
        """An operation that is over; times are in nanoseconds since 1970, None for now."""
        span = self.span(operation, at_ns=began_ns, parent=parent)
        span.value = value
        span.end(error, at_ns=ended_ns)
        return span

    def _failed(self, error: Exception) -> None:
        self.errors += 1
        if self.errors & (self.errors - 1):  # not a power of two: a broken tracer is no flood
            return
        logger.error(
            "the tracer %s failed (%s), %d times so far; the run goes on without it%s",
            type(self._tracer).__name__,
            type(error).__name__,
            self.errors,
            f"\n{_where(error)}" if self.errors == 1 else "",
        )


def _where(error: Exception) -> str:
    """The lines of code that led to an error, without its message.

    A redaction that fails, or a tracer of the application's own, may raise what was said.
    """
    return "".join(traceback.format_tb(error.__traceback__)).rstrip()


Told: TypeAlias = "Callable[[TracedCall], None]"


def traceable(tool: Tool) -> Callable[[Told], Callable[..., Any]] | None:
    """What makes the tool's function tell of the calls that it makes; a composite can do that."""
    if not tool.definition.is_composite:
        return None
    traced: Callable[[Told], Callable[..., Any]] | None = getattr(tool.function, "traced", None)
    return traced


class ChildCalls:
    """The calls that one call of a composite made.

    Args:
        call_id: Id of the call of the composite.
        library: The pinned snapshot.
    """

    def __init__(self, call_id: str, library: Library) -> None:
        self._call_id = call_id
        self._library = library
        self._calls: list[TracedCall] = []

    def add(self, call: TracedCall) -> None:
        """Write down a call that is over; may be called in the thread of the composite."""
        self._calls.append(call)

    def tell(self, tracing: Tracing, parent: OpenSpan) -> None:
        """Tell of them in the order in which they began, each below the one that made it."""
        spans: dict[tuple[int, ...], OpenSpan] = {}
        for call in sorted(self._calls, key=lambda call: call.sequence):
            spans[call.sequence] = tracing.tell(
                self._operation(call),
                None if call.error is not None else ChildResult(value=call.result),
                error=call.error,
                began_ns=call.began_ns,
                ended_ns=call.ended_ns,
                parent=_nearest(spans, call.sequence) or parent,
            )

    def _operation(self, call: TracedCall) -> ChildOperation:
        place = ".".join(map(str, call.sequence))
        return ChildOperation(
            call=ToolCall(
                call_id=f"{self._call_id}/{place}", name=call.name, arguments=call.arguments
            ),
            tool=self._library.get(call.name),
            library=self._library,
            level=call.depth,
        )


def _nearest(spans: dict[tuple[int, ...], OpenSpan], sequence: tuple[int, ...]) -> OpenSpan | None:
    """The call that this one stands in; places of loops lie between them."""
    for length in range(len(sequence) - 1, 0, -1):
        if sequence[:length] in spans:
            return spans[sequence[:length]]
    return None


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
