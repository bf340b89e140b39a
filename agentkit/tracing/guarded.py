"""``Tracing``: a tracer as the agent uses it, whose errors stay out of the run."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypeVar

from agentkit.errors import UsageError
from agentkit.tracing.operations import Operation, Outcome, Retry, Value
from agentkit.tracing.tracer import ChildSpans, Span, Tracer

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
