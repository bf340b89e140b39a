"""A run is a part of its client's trace: OpenTelemetry's own propagator writes the header."""

import pytest
from opentelemetry import propagate
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentkit.tracing import Tracing

URL = "/v1/chat/completions"


@pytest.fixture
def spans():
    """Where spans are exported to."""
    return InMemorySpanExporter()


@pytest.fixture
def provider(spans):
    """Makes them."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return provider


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_hangs_below_its_client(make_app, talk, body, store, spans, provider, stream):
    """The client's span is the parent of the run's, and the episode has the id of its trace."""
    app = make_app(agent={"tracing": Tracing(tracer_provider=provider)})
    headers = {}
    with provider.get_tracer("client").start_as_current_span("client") as client_span:
        propagate.inject(headers)
    async with talk(app) as client:
        await client.post(URL, json=body("Hi", stream=stream), headers=headers)
        await client.post(URL, json=body("Hi", stream=stream))
        await client.post(URL, json=body("Hi"), headers={"traceparent": "00-nonsense-01"})
    mine = client_span.get_span_context()
    runs = [span for span in spans.get_finished_spans() if span.name.startswith("invoke_agent")]
    parents = [run.parent.span_id if run.parent else None for run in runs]
    assert parents == [mine.span_id, None, None]
    assert [span.context.trace_id == mine.trace_id for span in runs] == [True, False, False]
    kept = {episode.metadata["trace_id"] for episode in store.select()}
    assert f"{mine.trace_id:032x}" in kept
    assert len(kept) == 3
