"""The extra ``otel`` beside an SDK that the application chose: the call has its span."""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from shared import SQUARE_12, caller, check, square

from agentkit import Agent
from agentkit.tracing import Tracing

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

agent = Agent(caller(SQUARE_12), tools=[square], tracing=Tracing())
result = agent.run_sync("What is 12 squared?")
names = [span.name for span in exporter.get_finished_spans()]
assert "execute_tool square" in names, names
check(result, 144, f"{len(names)} spans", "opentelemetry-api", "opentelemetry-sdk")
