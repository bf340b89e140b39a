"""``Tracing``: spans and metrics through OpenTelemetry's API, and lines of Python's ``logging``.

Only the API package is used (the extra ``otel``): which SDK, sampler and exporter there is, is the
application's choice, and without an SDK every span is a no-op. Names and attributes are those of
the GenAI semantic conventions. What an exporter raises stays out of the run.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, Self, TypeAlias

from agentkit._version import __version__
from agentkit.errors import CompositeRunError, MissingExtraError, ModelStatusError, RunError
from agentkit.models.retries import RETRYING

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.metrics import MeterProvider

    from agentkit.models.retries import Attempt
    from agentkit.tracing.content import ContentPolicy

CONVENTIONS_VERSION: Final = "1.41.1"
"""The last release of OpenTelemetry's semantic conventions that holds those of GenAI."""

LOGGER = "agentkit.trace"
"""Name of the logger that ``agentkit run --trace log`` writes to."""

ChildSpans = Literal["all", "errors", "off"]
"""Which calls inside composites are told: all of them, those of composites that failed, or none."""

Fact: TypeAlias = "str | bool | int | float | tuple[str, ...]"
P = ParamSpec("P")

_SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTIONS_VERSION}"
_SECONDS_BUCKETS = tuple(0.01 * 2**power for power in range(14))
_TOKEN_BUCKETS = tuple(float(4**power) for power in range(14))
_EPISODE: ContextVar[str] = ContextVar("episode", default="")
_LOGGED = {
    "agentkit.episode.id": "episode",
    "error.type": "error",
    "agentkit.episode.stop_reason": "stop",
    "agentkit.episode.turns": "turns",
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.response.finish_reasons": "finish",
    "agentkit.refine.round": "refine_round",
    "agentkit.retries": "retries",
    "agentkit.retrieval.offered.size": "offered",
    "gen_ai.tool.call.id": "call",
    "agentkit.tool.attempts": "attempts",
    "agentkit.failure.label": "label",
    "agentkit.guardrail.cause": "cause",
}
"""What the text of a line tells, and as what; all of it is in the record's ``agentkit``."""

logger = logging.getLogger(__name__)


class Tracing:
    """Tells what agents do. One serves any number of agents and runs.

    Args:
        tracer_provider: Makes the spans; None takes the global one.
        meter_provider: Makes the histograms; None takes the global one.
        content: How texts, arguments and results are written into spans; None, the default, writes
            none of them, nor any message of an exception.
        child_spans: Which calls inside composites get spans: ``all``, those of composite calls
            that failed (``errors``), or none (``off``).
        log: A logger that gets a line for each span when it ends: runs at INFO, their parts at
            DEBUG, failures at WARNING and failed runs at ERROR. ``record.agentkit`` is a dictionary
            of all attributes, for formatters that write JSON. With a logger, OpenTelemetry need
            not be installed.

    Raises:
        MissingExtraError: ``opentelemetry-api`` is not installed, and there is no logger.

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
        meter_provider: MeterProvider | None = None,
        content: ContentPolicy | None = None,
        child_spans: ChildSpans = "errors",
        log: logging.Logger | None = None,
    ) -> None:
        self.content = content
        self.child_spans: ChildSpans = child_spans
        self.log = log
        self.errors = 0
        try:
            self.otel: _OpenTelemetry | None = _OpenTelemetry(tracer_provider, meter_provider)
        except ImportError as error:
            if log is None:
                raise MissingExtraError(
                    "Tracing",
                    package="opentelemetry-api",
                    install='pip install "agentkit-evolve[otel]"',
                ) from error
            self.otel = None

    def span(
        self,
        kind: str,
        subject: str,
        facts: Mapping[str, Fact],
        *,
        outcome: Callable[[object], Mapping[str, Fact]] | None = None,
        content: Callable[[object, ContentPolicy], Mapping[str, str]] | None = None,
        measured: Mapping[str, Fact] | None = None,
        is_remote: bool = False,
        began_ns: int | None = None,
        parent: Span | None = None,
        episode_id: str = "",
    ) -> Span:
        """Begin a span; ``agentkit.tracing.spans`` holds those of a run.

        Args:
            kind: The operation, in the words of the conventions.
            subject: Which one; it ends the name of the span.
            facts: What is known now.
            outcome: Tells more of the span's ``value`` when it ends.
            content: Tells what was said; asked only where a policy wants it.
            measured: What to tell the measurements of histograms apart by; None measures nothing.
            is_remote: Whether another process does it.
            began_ns: When, in nanoseconds since 1970; None for now.
            parent: What it is a part of; None for the span that is active.
            episode_id: For the span of a run.
        """
        span = Span(self, kind, subject, {"gen_ai.operation.name": kind, **facts})
        span.outcome, span.content, span.measured = outcome, content, measured
        span.episode_id = episode_id or _EPISODE.get()
        span.is_run = bool(episode_id)
        span.begin(began_ns or time.time_ns(), is_remote, parent)
        return span

    def failed(self, error: Exception) -> None:
        """Count and log what telling raised."""
        self.errors += 1
        if self.errors & (self.errors - 1):  # not a power of two: a broken exporter is no flood
            return
        where = "".join(traceback.format_tb(error.__traceback__)).rstrip()
        logger.error(
            "tracing failed (%s), %d times so far; the run goes on without it%s",
            type(error).__name__,
            self.errors,
            f"\n{where}" if self.errors == 1 else "",
        )


def _safe(method: Callable[Concatenate[Span, P], None]) -> Callable[Concatenate[Span, P], None]:
    """A method of a span whose errors are counted and stay out of the run."""

    def safely(span: Span, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(span, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever an exporter raises, the run goes on
            span.tracing.failed(error)

    return safely


class Span:
    """An operation that goes on; a context manager around the work.

    What the work gives is put into ``value`` before the block is left; what it raises is seen on
    the way out. Retries of models inside the block become events.
    """

    outcome: Callable[[object], Mapping[str, Fact]] | None = None
    content: Callable[[object, ContentPolicy], Mapping[str, str]] | None = None
    measured: Mapping[str, Fact] | None = None
    value: object = None
    first_text_ns: int | None = None
    episode_id = ""
    is_run = False
    began_ns = 0
    retries = 0
    _span: Any = None
    _token: object = None
    _episode_token: Token[str] | None = None
    _retrying: Token[Attempt | None] | None = None

    def __init__(self, tracing: Tracing, kind: str, subject: str, facts: dict[str, Fact]) -> None:
        self.tracing = tracing
        self.kind = kind
        self.subject = subject
        self.facts = facts

    @_safe
    def begin(self, began_ns: int, is_remote: bool, parent: Span | None) -> None:  # noqa: FBT001
        """Start it; see ``Tracing.span``."""
        self.began_ns = began_ns
        otel = self.tracing.otel
        if otel is not None:
            kinds, above = otel.trace.SpanKind, None if parent is None else parent._span  # noqa: SLF001
            self._span = otel.tracer.start_span(
                f"{self.kind} {self.subject}" if self.subject else self.kind,
                context=None if above is None else otel.trace.set_span_in_context(above),
                kind=kinds.CLIENT if is_remote else kinds.INTERNAL,
                attributes=self.facts,
                start_time=began_ns,
            )

    @property
    def ids(self) -> Mapping[str, str]:
        """``trace_id`` and ``span_id`` in hexadecimal digits; nothing without an SDK."""
        otel = self.tracing.otel
        if otel is None or self._span is None:
            return {}
        known = self._span.get_span_context()
        if not known.is_valid:
            return {}
        return {
            "trace_id": otel.trace.format_trace_id(known.trace_id),
            "span_id": otel.trace.format_span_id(known.span_id),
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
        self.end(error)

    def end(self, error: BaseException | None = None, *, at_ns: int | None = None) -> None:
        """It is over; called by leaving the block, or for what is told afterwards."""
        ended = at_ns or time.time_ns()
        self._tell_outcome(error)
        self._write(error, ended)
        self._log(max(ended - self.began_ns, 0) / 1e9)

    @_safe
    def _activate(self) -> None:
        if self.tracing.log is not None and self.is_run:
            self._episode_token = _EPISODE.set(self.episode_id)
        otel = self.tracing.otel
        if otel is not None and self._span is not None:
            self._token = otel.context.attach(otel.trace.set_span_in_context(self._span))

    @_safe
    def _deactivate(self) -> None:
        if self._episode_token is not None:
            _EPISODE.reset(self._episode_token)
        otel = self.tracing.otel
        if otel is not None and self._token is not None:
            otel.context.detach(self._token)

    @_safe
    def _note_retry(self, error: BaseException, failures: int, delay_seconds: float) -> None:
        del failures
        self.retries += 1
        if self._span is not None:
            about = {"error.type": error_type(error), "agentkit.retry.delay_seconds": delay_seconds}
            self._span.add_event("agentkit.retry", about)

    @_safe
    def _tell_outcome(self, error: BaseException | None) -> None:
        if error is not None:
            self.facts["error.type"] = error_type(error)
        if self.outcome is not None:
            self.facts |= self.outcome(self.value)
        if self.retries:
            self.facts["agentkit.retries"] = self.retries
        if self.first_text_ns is not None:
            first = (self.first_text_ns - self.began_ns) / 1e9
            self.facts["gen_ai.response.time_to_first_chunk"] = first

    @_safe
    def _write(self, error: BaseException | None, ended_ns: int) -> None:
        otel, span, policy = self.tracing.otel, self._span, self.tracing.content
        is_recording = span is not None and span.is_recording()
        try:
            if is_recording:
                span.set_attributes(self.facts)
                if "error.type" in self.facts and otel is not None:
                    span.set_status(otel.trace.StatusCode.ERROR)  # a description would be content
            wants_content = is_recording or self.tracing.log is not None
            if policy is not None and self.content is not None and wants_content:
                said = self.content(self.value, policy)
                self.facts |= said
                if is_recording:
                    span.set_attributes(said)
            if policy is not None and error is not None and is_recording:
                text, name = policy.text(str(error)), type(error).__qualname__
                span.add_event("exception", {"exception.type": name, "exception.message": text})
        finally:
            if otel is not None and span is not None:
                span.end(end_time=ended_ns)
                otel.measure(self, max(ended_ns - self.began_ns, 0) / 1e9)

    @_safe
    def _log(self, seconds: float) -> None:
        log, failed = self.tracing.log, "error.type" in self.facts
        part = logging.WARNING if failed else logging.DEBUG
        whole = logging.ERROR if failed else logging.INFO
        level = whole if self.is_run else part
        if log is None or not log.isEnabledFor(level):
            return
        facts = {**self.facts, "agentkit.episode.id": self.episode_id}
        words = [self.kind, *([_one_word(self.subject)] if self.subject else [])]
        words.append(f"seconds={seconds:.6f}")
        told = ((key, facts[name]) for name, key in _LOGGED.items() if name in facts)
        words += (f"{key}={_one_word(value)}" for key, value in told)
        log.log(level, "%s", " ".join(words), extra={"agentkit": {"seconds": seconds, **facts}})


class NoSpan:
    """What stands in for a span where nobody traces."""

    ids: Mapping[str, str] = {}
    first_text_ns: int | None = 0
    value: object = None

    def __setattr__(self, name: str, value: object) -> None:
        """Keep nothing: one object serves all runs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


NO_SPAN = NoSpan()


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


def _one_word(value: object) -> str:
    """A value for a line: as it is when it is one word, else as JSON, which has no line breaks."""
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    return text if text and text.isprintable() and " " not in text else json.dumps(text)


class _OpenTelemetry:
    """OpenTelemetry's API, imported when tracing is asked for, with our instruments."""

    def __init__(self, tracers: trace.TracerProvider | None, meters: MeterProvider | None) -> None:
        from opentelemetry import context, metrics, trace

        self.context, self.trace = context, trace
        self.tracer = trace.get_tracer("agentkit", __version__, tracers, schema_url=_SCHEMA_URL)
        meter = metrics.get_meter("agentkit", __version__, meters, _SCHEMA_URL)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_SECONDS_BUCKETS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )

    def measure(self, span: Span, seconds: float) -> None:
        """Record what took how long; tokens are those of requests, a run's would count twice."""
        if span.measured is None:
            return
        about = {"gen_ai.operation.name": span.kind, **span.measured}
        for name in ("gen_ai.response.model", "error.type"):
            if name in span.facts:
                about[name] = span.facts[name]
        self._duration.record(seconds, about)
        if span.kind == "chat" and "gen_ai.usage.input_tokens" in span.facts:
            about.pop("error.type", None)
            for kind in ("input", "output"):
                count: Any = span.facts[f"gen_ai.usage.{kind}_tokens"]
                self._tokens.record(count, {**about, "gen_ai.token.type": kind})
