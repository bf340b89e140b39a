"""``OpenTelemetryTracing``: runs as spans and histograms of OpenTelemetry's GenAI conventions.

Only the API package is used (the extra ``otel``): which SDK, sampler and exporter there is, is the
application's choice. Without an SDK every call is a no-op of the API.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentkit._version import __version__
from agentkit.errors import MissingExtraError
from agentkit.tracing import conventions as names
from agentkit.tracing.content import ContentPolicy, content_of
from agentkit.tracing.facts import error_type, facts_after, facts_before, title
from agentkit.tracing.instruments import Instruments
from agentkit.tracing.operations import ChatOperation, Operation, Outcome
from agentkit.tracing.tracer import ChildSpans, Span

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider


class OpenTelemetryTracing:
    """Tells OpenTelemetry what agents do.

    Args:
        tracer_provider: Makes the spans; None takes the global one.
        meter_provider: Makes the histograms; None takes the global one.
        content: How texts, arguments and results are written into spans; None, the default, writes
            none of them, nor any message of an exception.
        child_spans: Which calls inside composites get spans: ``all``, those of composite calls
            that failed (``errors``), or none (``off``).

    Raises:
        MissingExtraError: ``opentelemetry-api`` is not installed.

    Example:
        >>> from agentkit import Agent
        >>> from agentkit.testing import ScriptedModel
        >>> agent = Agent(ScriptedModel(["Hello."]), tracer=OpenTelemetryTracing())
        >>> agent.run_sync("Hello?").output
        'Hello.'
    """

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: ContentPolicy | None = None,
        child_spans: ChildSpans = "errors",
    ) -> None:
        self.api = _Api()
        self._tracer = self.api.trace.get_tracer(
            "agentkit", __version__, tracer_provider, schema_url=names.SCHEMA_URL
        )
        self.instruments = Instruments(self.api.metrics, meter_provider)
        self.content = content
        self._child_spans = child_spans

    @property
    def child_spans(self) -> ChildSpans:
        """Which calls inside composites get spans."""
        return self._child_spans

    def start(
        self, operation: Operation, *, at_ns: int | None = None, parent: Span | None = None
    ) -> OpenTelemetrySpan:
        """Start the span of an operation."""
        trace = self.api.trace
        kind, subject = title(operation)
        is_remote = isinstance(operation, ChatOperation)
        began = at_ns or time.time_ns()
        span = self._tracer.start_span(
            f"{kind} {subject}" if subject else kind,
            context=parent.context if isinstance(parent, OpenTelemetrySpan) else None,
            kind=trace.SpanKind.CLIENT if is_remote else trace.SpanKind.INTERNAL,
            attributes=facts_before(operation),
            start_time=began,
        )
        return OpenTelemetrySpan(self, span, operation, began)


class OpenTelemetrySpan:
    """One operation as a span of OpenTelemetry; made by ``OpenTelemetryTracing``."""

    def __init__(
        self, tracing: OpenTelemetryTracing, span: trace.Span, operation: Operation, began_ns: int
    ) -> None:
        self._api = tracing.api
        self._instruments = tracing.instruments
        self._content = tracing.content
        self._span = span
        self._operation = operation
        self._began_ns = began_ns

    @property
    def ids(self) -> Mapping[str, str]:
        """``trace_id`` and ``span_id`` in hexadecimal digits; nothing without an SDK."""
        known = self._span.get_span_context()
        if not known.is_valid:
            return {}
        trace = self._api.trace
        return {
            "trace_id": trace.format_trace_id(known.trace_id),
            "span_id": trace.format_span_id(known.span_id),
        }

    @property
    def context(self) -> Context:
        """A context in which this is the active span."""
        context: Context = self._api.trace.set_span_in_context(self._span)
        return context

    def activate(self) -> object:
        """Make this the active span."""
        return self._api.context.attach(self.context)

    def deactivate(self, token: Any) -> None:
        """Make the one before the active span again."""
        self._api.context.detach(token)

    def end(self, outcome: Outcome, *, at_ns: int | None = None) -> None:
        """End the span and count what it used."""
        ended = at_ns or time.time_ns()
        facts = facts_after(self._operation, outcome)
        seconds = max(ended - self._began_ns, 0) / 1e9
        try:
            if self._span.is_recording():
                self._fill(outcome, facts)
        finally:
            self._span.end(end_time=ended)
            self._instruments.record(self._operation, facts, seconds)

    def _fill(self, outcome: Outcome, facts: Mapping[str, Any]) -> None:
        span = self._span
        span.set_attributes(facts)
        if outcome.first_text_ns is not None:
            span.set_attribute(names.FIRST_CHUNK, (outcome.first_text_ns - self._began_ns) / 1e9)
        for retry in outcome.retries:
            met, waits = error_type(retry.error), retry.delay_seconds
            span.add_event(
                "agentkit.retry",
                {names.ERROR: met, names.RETRY_DELAY: waits},
                timestamp=retry.at_ns,
            )
        if names.ERROR in facts:  # without a description: a message of an exception is content
            span.set_status(self._api.trace.StatusCode.ERROR)
        if self._content is not None:
            span.set_attributes(dict(content_of(self._operation, outcome, self._content)))
            if outcome.error is not None:
                text = self._content.text(str(outcome.error))
                kind = type(outcome.error).__qualname__
                span.add_event("exception", {"exception.type": kind, "exception.message": text})


class _Api:
    """The modules of OpenTelemetry's API, imported when tracing is asked for.

    Raises:
        MissingExtraError: They are not installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry import context, metrics, trace
        except ImportError as error:
            raise MissingExtraError(
                "OpenTelemetryTracing",
                package="opentelemetry-api",
                install='pip install "agentkit-evolve[otel]"',
            ) from error
        self.context, self.metrics, self.trace = context, metrics, trace
