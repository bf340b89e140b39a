"""Names, units and numbers of what is measured."""

from __future__ import annotations

from opentelemetry.sdk.metrics.export import AggregationTemporality

from agentkit import Agent, tool
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ModelResponse
from agentkit.testing import ScriptedModel
from agentkit.tracing import CONVENTIONS_VERSION

DURATION = "gen_ai.client.operation.duration"
TOKENS = "gen_ai.client.token.usage"


@tool
def fail() -> None:
    """Fail."""
    raise ValueError("no")


def answer(text: str, prompt: int, completion: int) -> ModelResponse:
    usage = Usage(requests=1, prompt_tokens=prompt, completion_tokens=completion)
    return ModelResponse(message=AssistantMessage(text=text), usage=usage)


def test_requests_runs_and_calls_are_timed(telemetry) -> None:
    """Each kind of operation is told apart, and failures by their kind."""
    call = ToolCall(call_id="1", name="fail")
    agent = Agent(ScriptedModel([[call], "Sorry."]), tools=[fail], tracing=telemetry.tracing())
    agent.run_sync("Go.")
    counts = {
        tuple(sorted(point.attributes.items())): point.count for point in telemetry.points(DURATION)
    }
    run = {"gen_ai.agent.name": "agent", "gen_ai.operation.name": "invoke_agent"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "scripted"}
    model = {"gen_ai.provider.name": "scripted", "gen_ai.request.model": "scripted"}
    tool_run = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.provider.name": "agentkit",
        "gen_ai.tool.name": "fail",
        "error.type": "ValueError",
    }
    expected = [({**run, **model}, 1), ({**chat, **model}, 2), (tool_run, 1)]
    assert counts == {tuple(sorted(about.items())): count for about, count in expected}


def test_tokens_are_those_of_requests(telemetry) -> None:
    """Input and output are counted apart, once a request, and not again for the run."""
    agent = Agent(ScriptedModel([answer("a", 100, 3)]), tracing=telemetry.tracing())
    agent.run_sync("Hi")
    points = telemetry.points(TOKENS)
    sums = {point.attributes["gen_ai.token.type"]: point.sum for point in points}
    assert sums == {"input": 100, "output": 3}
    assert {point.attributes["gen_ai.response.model"] for point in points} == {"scripted"}


def test_names_that_a_model_made_up_are_one_value(telemetry) -> None:
    """A metric does not grow with what models write."""
    calls = [ToolCall(call_id=str(n), name=f"made_up_{n}") for n in range(5)]
    agent = Agent(ScriptedModel([calls, "Hm."]), tools=[fail], tracing=telemetry.tracing())
    agent.run_sync("Go.")
    points = [p for p in telemetry.points(DURATION) if "gen_ai.tool.name" in p.attributes]
    assert [(p.attributes["gen_ai.tool.name"], p.count) for p in points] == [("unknown_tool", 5)]


SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTIONS_VERSION}"


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
