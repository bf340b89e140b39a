"""The names are those of OpenTelemetry's package of semantic conventions."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from opentelemetry.sdk.metrics.export import AggregationTemporality
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes

from agentkit import Agent
from agentkit.messages import AssistantMessage, Usage
from agentkit.models.base import ModelResponse
from agentkit.testing import ScriptedModel
from agentkit.tracing import CONVENTIONS_VERSION, spans

SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTIONS_VERSION}"

DEFINED = {
    value
    for module in (gen_ai_attributes, gen_ai_metrics, error_attributes)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
}
SOURCES = Path(spans.__file__).parent.glob("*.py")
OURS = {
    name
    for source in SOURCES
    for name in re.findall(r'"((?:gen_ai|agentkit|error)\.[a-z_.]+)"', source.read_text())
} - {"agentkit.trace", "agentkit.retry", "agentkit.replica.name"}


def test_every_foreign_name_is_defined_there() -> None:
    """What does not begin with our own prefix is a name of the conventions."""
    foreign = {name for name in OURS if not name.startswith("agentkit")}
    assert len(foreign) > 30
    assert foreign - DEFINED == set()


def test_kinds_of_operations_are_defined_there() -> None:
    """All but the guardrail, which is a proposal so far."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this part has moved elsewhere
        known = {value.value for value in gen_ai_attributes.GenAiOperationNameValues}
    assert {"invoke_agent", "chat", "execute_tool", "retrieval"} <= known
    assert "run_guardrail" not in known


def test_histograms_have_the_recommended_buckets_and_units(telemetry) -> None:
    """Seconds and tokens fall into the buckets that the conventions ask for."""
    usage = Usage(requests=1, prompt_tokens=5, completion_tokens=2)
    answer = ModelResponse(message=AssistantMessage(text="Hi."), usage=usage)
    Agent(ScriptedModel([answer]), tracing=telemetry.tracing()).run_sync("Hi")
    (resource,) = telemetry.reader.get_metrics_data().resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.schema_url == SCHEMA_URL
    found = {metric.name: metric for metric in scope.metrics}
    assert {name: metric.unit for name, metric in found.items()} == {
        "gen_ai.client.operation.duration": "s",
        "gen_ai.client.token.usage": "{token}",
    }
    duration = found["gen_ai.client.operation.duration"].data
    assert duration.aggregation_temporality is AggregationTemporality.CUMULATIVE
    assert duration.data_points[0].explicit_bounds == (
        *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64),
        *(1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
    )
    tokens = found["gen_ai.client.token.usage"].data.data_points
    assert tokens[0].explicit_bounds == (
        *(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144),
        *(1048576, 4194304, 16777216, 67108864),
    )
