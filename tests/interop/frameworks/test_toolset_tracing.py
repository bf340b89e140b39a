"""A toolset's tracer tells of its part of a run, below the span of whoever drives the loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentkit import Library
from agentkit.interop import Toolset
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.retrieval import default_retriever
from agentkit.tracing import Tracing

reason = "needs opentelemetry-sdk"
sdk = pytest.importorskip("opentelemetry.sdk.trace", reason=reason)


async def test_spans_below_those_of_the_framework(
    library: Library, call: Callable[..., ToolCall]
) -> None:
    """Retrieval, calls and refused calls are spans in the framework's trace, which is not ours."""
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = Tracing(tracer_provider=provider)
    toolset = Toolset(library, tracing=tracer, retriever=default_retriever())
    with provider.get_tracer("framework").start_as_current_span("agent run"):
        run = await toolset.start("Delete everything below a path; twice a number?")
        calls = call("1", "double", x=4), call("2", "double", x="four"), call("3", "wipe", path="/")
        run.answered(AssistantMessage(tool_calls=calls))
        for one in calls:
            await run.call(one)
        await run.finish("8")
    spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time)
    names = {span.context.span_id: span.name for span in spans}
    told = [(span.parent and names[span.parent.span_id], span.name) for span in spans]
    assert told == [
        (None, "agent run"),
        ("agent run", "retrieval"),
        ("agent run", "execute_tool double"),
        ("agent run", "execute_tool double"),
        ("execute_tool double", "run_guardrail validation"),
        ("agent run", "execute_tool wipe"),
        ("execute_tool wipe", "run_guardrail approval"),
    ]
    failed = [span.name for span in spans if "error.type" in span.attributes]
    assert failed == ["execute_tool double"]  # to wait for a person is no error
