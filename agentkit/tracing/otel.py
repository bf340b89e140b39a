"""``OpenTelemetryTracing``: runs as spans and histograms of OpenTelemetry's GenAI conventions.

Only the API package is used (the extra ``otel``): which SDK, sampler and exporter there is, is the
application's choice. Without an SDK every call is a no-op of the API.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from agentkit._version import __version__
from agentkit.errors import MissingExtraError
from agentkit.library.replicas import Replica, ReplicaStatus
from agentkit.tracing import conventions as names
from agentkit.tracing.content import ContentPolicy, content_of
from agentkit.tracing.facts import (
    error_type,
    facts_after,
    facts_before,
    provider_of,
    title,
    tool_name,
)
from agentkit.tracing.tracer import (
    ChatOperation,
    ChildSpans,
    Operation,
    Outcome,
    RunOperation,
    Span,
    ToolOperation,
)

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation


OWN_PROVIDER = "agentkit"
"""The provider of what runs in this process; the conventions want one of every measurement."""


class Instruments:
    """Records what operations took.

    Args:
        metrics: The module ``opentelemetry.metrics``.
        provider: Makes the histograms; None takes the global one.
    """

    def __init__(self, metrics: ModuleType, provider: MeterProvider | None) -> None:
        meter = metrics.get_meter("agentkit", __version__, provider, names.SCHEMA_URL)
        self._duration = meter.create_histogram(
            names.DURATION,
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=names.DURATION_BUCKETS,
        )
        self._tokens = meter.create_histogram(
            names.TOKENS,
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=names.TOKEN_BUCKETS,
        )

    def record(self, operation: Operation, facts: Mapping[str, Any], seconds: float) -> None:
        """Record an operation that is over.

        Tokens are those of requests to models; a run's own would count them twice. Checks, searches
        and calls inside composites are parts of what is recorded, and not recorded again.

        Args:
            operation: What.
            facts: What was known at its end.
            seconds: How long it took.
        """
        about = _dimensions(operation)
        if about is None:
            return
        for name in (names.RESPONSE_MODEL, names.ERROR):
            if name in facts:
                about[name] = facts[name]
        self._duration.record(seconds, about)
        if isinstance(operation, ChatOperation) and names.INPUT_TOKENS in facts:
            about.pop(names.ERROR, None)
            self._tokens.record(facts[names.INPUT_TOKENS], {**about, names.TOKEN_TYPE: "input"})
            self._tokens.record(facts[names.OUTPUT_TOKENS], {**about, names.TOKEN_TYPE: "output"})


def _dimensions(operation: Operation) -> dict[str, Any] | None:
    """What to tell measurements apart by: few values each, and no text; None for no measurement."""
    match operation:
        case ChatOperation(model=model):
            kind, own = names.CHAT, {names.REQUEST_MODEL: model.name}
        case RunOperation(agent=agent, model=model):
            kind, own = names.INVOKE_AGENT, {names.AGENT: agent, names.REQUEST_MODEL: model.name}
        case ToolOperation(tool=tool):
            kind, own = names.EXECUTE_TOOL, {names.TOOL: tool_name(tool)}
            return {names.OPERATION: kind, names.PROVIDER: OWN_PROVIDER, **own}
        case _:
            return None
    return {names.OPERATION: kind, names.PROVIDER: provider_of(model), **own}


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


_Read: TypeAlias = Callable[[ReplicaStatus], float]

_GAUGES: tuple[tuple[str, str, str, _Read], ...] = (
    ("agentkit.library.version", "{version}", "Version that runs begin with.", lambda s: s.version),
    (
        "agentkit.library.staleness",
        "s",
        "Time since the library was known to be the newest.",
        lambda status: status.staleness_seconds,
    ),
    (
        "agentkit.store.away",
        "1",
        "1 while the store does not answer and the last library is served.",
        lambda status: float(status.state == "away"),
    ),
    (
        "agentkit.library.behind",
        "1",
        "1 while the store answers and its newest library can not be taken up.",
        lambda status: float(status.state == "behind"),
    ),
)
_COUNTERS: tuple[tuple[str, str, str, _Read], ...] = (
    (
        "agentkit.library.refreshes",
        "{version}",
        "Library versions that were taken up.",
        lambda status: status.refreshes,
    ),
    (
        "agentkit.library.refresh.failures",
        "{look}",
        "Looks at the store that failed.",
        lambda status: status.failed_looks,
    ),
    (
        "agentkit.library.hints",
        "{hint}",
        "Times that the store called for a look.",
        lambda status: status.hints,
    ),
)


def observe_replica(
    replica: Replica, *, name: str = "library", meter_provider: MeterProvider | None = None
) -> None:
    """Report how a replica stands, each time that metrics are collected.

    The replica is not kept alive by it: of one that is gone nothing more is reported.

    Args:
        replica: Which.
        name: Tells it apart from other replicas of the process, as ``agentkit.replica.name``.
        meter_provider: Makes the instruments; None takes the global one.

    Raises:
        MissingExtraError: ``opentelemetry-api`` is not installed.

    Example:
        >>> with Replica("memory:") as store:
        ...     observe_replica(store)
    """
    try:
        from opentelemetry import metrics
    except ImportError as error:
        raise MissingExtraError(
            "observe_replica",
            package="opentelemetry-api",
            install='pip install "agentkit-evolve[otel]"',
        ) from error
    held = weakref.ref(replica)
    about = {"agentkit.replica.name": name}

    def reading(read: _Read) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observations(_: CallbackOptions) -> Iterable[Observation]:
            found = held()
            return () if found is None else (metrics.Observation(read(found.status), about),)

        return observations

    meter = metrics.get_meter("agentkit", __version__, meter_provider, names.SCHEMA_URL)
    for name_of, unit, words, read in _GAUGES:
        meter.create_observable_gauge(name_of, [reading(read)], unit=unit, description=words)
    for name_of, unit, words, read in _COUNTERS:
        meter.create_observable_counter(name_of, [reading(read)], unit=unit, description=words)
