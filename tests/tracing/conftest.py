"""Real providers of OpenTelemetry's SDK that keep what they are given in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentkit.tracing import Tracing


class Telemetry:
    """What was exported, and tracers that export to it."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def tracing(self, **options: Any) -> Tracing:
        """A tracer that exports here."""
        return Tracing(tracer_provider=self.provider, **options)

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

    def everything(self) -> str:
        """All that left the process, as one text."""
        return "\n".join(
            json.dumps(json.loads(span.to_json()), ensure_ascii=False)
            for span in self.exporter.get_finished_spans()
        )


@pytest.fixture
def telemetry() -> Telemetry:
    """Exporters that are empty."""
    return Telemetry()
