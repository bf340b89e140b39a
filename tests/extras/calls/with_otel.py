"""The extra ``otel``: the API alone. Spans go nowhere, and the run is as without a tracer."""

from shared import SQUARE_12, caller, check, square

from agentkit import Agent
from agentkit.tracing import Tracing

agent = Agent(caller(SQUARE_12), tools=[square], tracing=Tracing())
check(agent.run_sync("What is 12 squared?"), 144, "spans to nowhere", "opentelemetry-api")
