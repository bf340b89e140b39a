"""``Tracing``: spans through OpenTelemetry's API.

Only the API package is used (the extra ``otel``): which SDK, sampler and exporter there is, is the
application's choice, and without an SDK every span is a no-op. Names and attributes are those of
the GenAI semantic conventions. What an exporter raises stays out of the run.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Mapping
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeAlias

from agentkit._version import __version__
from agentkit.errors import CompositeRunError, MissingExtraError, ModelStatusError, RunError
from agentkit.models.retries import RETRYING

if TYPE_CHECKING:
    from opentelemetry import trace

    from agentkit.models.retries import Attempt
    from agentkit.tracing.content import ContentPolicy

CONVENTIONS_VERSION: Final = "1.41.1"
"""The last release of OpenTelemetry's semantic conventions that holds those of GenAI."""

Fact: TypeAlias = "str | bool | int | float | tuple[str, ...]"
P = ParamSpec("P")

_SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTIONS_VERSION}"

logger = logging.getLogger(__name__)


class Tracing:
    """Tells what agents do. One serves any number of agents and runs.

    Args:
        tracer_provider: Creates the spans; None uses the global one.
        content: How texts, arguments and results are written into spans; None, the default, writes
            none of them, nor any message of an exception.

    Raises:
        MissingExtraError: ``opentelemetry-api`` is not installed.

    Attributes:
        errors: How often an exporter, or ``ContentPolicy.redact``, raised. The first time is logged
            with the lines of code that led to it, then each time that the count doubles; never
            with the message of the exception, which may hold what was said.

    Example:
        >>> from agentkit import Agent
        >>> from agentkit.testing import ScriptedModel
        >>> agent = Agent(ScriptedModel(["Hello."]), tracing=Tracing())
        >>> agent.run_sync("Hello?").output
        'Hello.'
    """

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        content: ContentPolicy | None = None,
    ) -> None:
        try:
            from opentelemetry import context, trace
        except ImportError as error:
            raise MissingExtraError(
                "Tracing",
                package="opentelemetry-api",
                install='pip install "agentkit-evolve[otel]"',
            ) from error
        self.content = content
        self.errors = 0
        self.context, self.api = context, trace
        self.tracer = trace.get_tracer(
            "agentkit", __version__, tracer_provider, schema_url=_SCHEMA_URL
        )

    def span(
        self,
        kind: str,
        subject: str,
        facts: Mapping[str, Fact],
        *,
        outcome: Callable[[object], Mapping[str, Fact]] | None = None,
        content: Callable[[object, ContentPolicy], Mapping[str, str]] | None = None,
        is_remote: bool = False,
        began_ns: int | None = None,
    ) -> Span:
        """Begin a span; ``agentkit.tracing.spans`` holds those of a run.

        Args:
            kind: The operation, in the words of the conventions.
            subject: Which one; it ends the name of the span.
            facts: What is known now.
            outcome: Tells more of the span's ``value`` when it ends.
            content: Tells what was said; asked only where a policy wants it.
            is_remote: Whether another process does it.
            began_ns: When, in nanoseconds since 1970; None for now.
        """
        span = Span(self, kind, {"gen_ai.operation.name": kind, **facts})
        span.outcome, span.content = outcome, content
        name = f"{kind} {subject}" if subject else kind
        span.begin(name, began_ns or time.time_ns(), is_remote)
        return span

    def failed(self, error: Exception) -> None:
        """Count and log what telling raised."""
        self.errors += 1
        if self.errors & (self.errors - 1):  # not a power of two: a broken exporter is not a flood
            return
        where = "".join(traceback.format_tb(error.__traceback__)).rstrip()
        logger.error(
            "tracing failed (%s), %d times so far; the run continues without it%s",
            type(error).__name__,
            self.errors,
            f"\n{where}" if self.errors == 1 else "",
        )


def _safe(method: Callable[Concatenate[Span, P], None]) -> Callable[Concatenate[Span, P], None]:
    """A method of a span whose errors are counted and stay out of the run."""

    def safely(span: Span, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(span, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever an exporter raises, the run continues
            span.tracing.failed(error)

    return safely


class Span:
    """An operation that goes on; a context manager around the work.

    What the work gives is put into ``value`` before the block is left; what it raises is seen on
    the way out. Retries of models inside the block become events.
    """

    outcome: Callable[[object], Mapping[str, Fact]] | None = None
    content: Callable[[object, ContentPolicy], Mapping[str, str]] | None = None
    value: object = None
    first_text_ns: int | None = None
    _began_ns = 0
    _retries = 0
    _span: Any = None
    _token: Any = None
    _retrying: Token[Attempt | None] | None = None

    def __init__(self, tracing: Tracing, kind: str, facts: dict[str, Fact]) -> None:
        self.tracing = tracing
        self.kind = kind
        self.facts = facts

    @_safe
    def begin(self, name: str, began_ns: int, is_remote: bool) -> None:  # noqa: FBT001
        """Start it; see ``Tracing.span``."""
        self._began_ns, kinds = began_ns, self.tracing.api.SpanKind
        self._span = self.tracing.tracer.start_span(
            name,
            kind=kinds.CLIENT if is_remote else kinds.INTERNAL,
            attributes=self.facts,
            start_time=began_ns,
        )

    @property
    def ids(self) -> Mapping[str, str]:
        """``trace_id`` and ``span_id`` in hexadecimal digits; nothing without an SDK."""
        known = None if self._span is None else self._span.get_span_context()
        if known is None or not known.is_valid:
            return {}
        api = self.tracing.api
        return {
            "trace_id": api.format_trace_id(known.trace_id),
            "span_id": api.format_span_id(known.span_id),
        }

    def __enter__(self) -> Self:
        self._retrying = RETRYING.set(self._note_retry) if self.kind == "chat" else None
        self._activate()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._retrying is not None:
            RETRYING.reset(self._retrying)
        self._deactivate()
        self._record_outcome(error)
        self._write(error)
        self._finish()

    @_safe
    def _activate(self) -> None:
        if self._span is not None:
            active = self.tracing.api.set_span_in_context(self._span)
            self._token = self.tracing.context.attach(active)

    @_safe
    def _deactivate(self) -> None:
        if self._token is not None:
            self.tracing.context.detach(self._token)

    @_safe
    def _note_retry(self, error: BaseException, failures: int, delay_seconds: float) -> None:
        del failures
        self._retries += 1
        if self._span is not None:
            about = {"error.type": error_type(error), "agentkit.retry.delay_seconds": delay_seconds}
            self._span.add_event("agentkit.retry", about)

    @_safe
    def _record_outcome(self, error: BaseException | None) -> None:
        if error is not None:
            self.facts["error.type"] = error_type(error)
        if self.outcome is not None:
            self.facts |= self.outcome(self.value)
        if self._retries:
            self.facts["agentkit.retries"] = self._retries
        if self.first_text_ns is not None:
            first = (self.first_text_ns - self._began_ns) / 1e9
            self.facts["gen_ai.response.time_to_first_chunk"] = first

    @_safe
    def _write(self, error: BaseException | None) -> None:
        span, policy = self._span, self.tracing.content
        if span is None or not span.is_recording():
            return
        span.set_attributes(self.facts)
        if "error.type" in self.facts:  # a description would be content
            span.set_status(self.tracing.api.StatusCode.ERROR)
        if policy is not None and self.content is not None:
            span.set_attributes(self.content(self.value, policy))
        if policy is not None and error is not None:
            text, name = policy.text(str(error)), type(error).__qualname__
            span.add_event("exception", {"exception.type": name, "exception.message": text})

    @_safe
    def _finish(self) -> None:
        if self._span is not None:
            self._span.end()


def error_type(error: BaseException) -> str:
    """A word for an error: a status, a code, or the name of its class; never its message."""
    if isinstance(error, RunError) and error.__cause__ is not None:
        return error_type(error.__cause__)
    if isinstance(error, ModelStatusError):
        return str(error.status)
    if isinstance(error, CompositeRunError):
        failed = error.code == "child_failed" and error.__cause__ is not None
        return type(error.__cause__).__name__ if failed else error.code
    return type(error).__name__
