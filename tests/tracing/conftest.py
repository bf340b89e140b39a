"""Real providers of OpenTelemetry's SDK that keep what they are given in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentkit import tool
from agentkit.composites.composite import composite_tool
from agentkit.composites.source import compose
from agentkit.library.library import Library
from agentkit.tools.tool import Tool
from agentkit.tracing import Tracing


class Telemetry:
    """What was exported, and tracers that export to it."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider(metric_readers=[self.reader])

    def tracing(self, **options: Any) -> Tracing:
        """A tracer that exports here."""
        return Tracing(tracer_provider=self.provider, meter_provider=self.meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        """Finished spans in the order in which they began."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    def named(self, name: str) -> ReadableSpan:
        """The only span of that name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def tree(self) -> list[str]:
        """Names of spans, indented below their parents."""
        ids = {span.context.span_id for span in self.spans}
        roots = [s for s in self.spans if s.parent is None or s.parent.span_id not in ids]
        return [line for root in roots for line in self._lines(root, "")]

    def _lines(self, span: ReadableSpan, indent: str) -> Iterator[str]:
        yield indent + span.name
        for child in self.spans:
            if child.parent is not None and child.parent.span_id == span.context.span_id:
                yield from self._lines(child, indent + "  ")

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric."""
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
            for point in found.data.data_points
        ]

    def everything(self) -> str:
        """All that left the process, as one text."""
        data = self.reader.get_metrics_data()
        metrics = json.dumps(json.loads(data.to_json()), ensure_ascii=False) if data else ""
        spans = (
            json.dumps(json.loads(span.to_json()), ensure_ascii=False)
            for span in self.exporter.get_finished_spans()
        )
        return "\n".join((*spans, metrics))


@pytest.fixture
def telemetry() -> Telemetry:
    """Exporters that are empty."""
    return Telemetry()


@pytest.fixture
def new_telemetry() -> type[Telemetry]:
    """Makes exporters that are empty."""
    return Telemetry


@tool
def double(x: float) -> float:
    """Twice a number."""
    return 2 * x


@tool
def invert(x: float) -> float:
    """One over a number."""
    return 1 / x


@pytest.fixture
def composites() -> Library:
    """Two primitives, a composite over them, and a composite over that."""
    return with_composites(
        [double, invert],
        "def half(x: float) -> float:\n    return invert(double(x))",
        "def both(x: float) -> float:\n    return half(x) + double(x)",
    )


def with_composites(tools: Iterable[Tool], *texts: str) -> Library:
    """A library of primitives and of composites, each over those before it."""
    known = {one.name: one for one in tools}
    for text in texts:
        made = composite_tool(compose(text, known), known)
        known[made.name] = made
    return Library(known.values())


@pytest.fixture
def composing() -> Callable[..., Library]:
    """Makes libraries with composites."""
    return with_composites
