"""Spans of runs, requests, calls and composites, and what is measured with them."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.sdk.metrics.export import AggregationTemporality
from opentelemetry.trace import SpanKind, StatusCode

from agentkit import Agent, tool
from agentkit.agent import ToolPolicy
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ModelResponse, ModelSettings
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import Effects
from agentkit.tracing import CONVENTIONS_VERSION


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


CALL = ToolCall(call_id="c1", name="add", arguments={"a": 1, "b": 2})
ASKS = ModelResponse(
    message=AssistantMessage(tool_calls=(CALL,)),
    usage=Usage(requests=1, prompt_tokens=40, cached_tokens=8, completion_tokens=9),
    finish_reason="tool_calls",
)
ANSWERS = ModelResponse(
    message=AssistantMessage(text="It is 3."),
    usage=Usage(requests=1, prompt_tokens=60, completion_tokens=4, cost_usd=0.5),
    finish_reason="stop",
)


def test_a_run_is_a_tree_of_its_requests_and_calls(telemetry) -> None:
    """The run holds each request to the model and each call of a tool, in order."""
    agent = Agent(ScriptedModel([ASKS, ANSWERS]), tools=[add], tracing=telemetry.tracing())
    agent.run_sync("What is 1 + 2?")
    assert telemetry.tree() == [
        "invoke_agent agent",
        "  chat scripted",
        "  execute_tool add",
        "  chat scripted",
    ]
    assert len({span.context.trace_id for span in telemetry.spans}) == 1
    assert agent.tracing.errors == 0


def test_the_span_of_the_run_tells_what_it_was(telemetry) -> None:
    """It names agent, model, conversation, library and episode, and sums up what was used."""
    agent = Agent(
        ScriptedModel([ASKS, ANSWERS]),
        tools=[add],
        store="memory:",
        tracing=telemetry.tracing(),
        name="sums",
    )
    result = agent.run_sync("What is 1 + 2?", session_id="s-1")
    span = telemetry.named("invoke_agent sums")
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.agent.name": "sums",
        "gen_ai.conversation.id": "s-1",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 13,
        "gen_ai.usage.cache_read.input_tokens": 8,
        "agentkit.usage.requests": 2,
        "agentkit.usage.cost_usd": 0.5,
        "agentkit.episode.id": result.episode.episode_id,
        "agentkit.episode.stop_reason": "finished",
        "agentkit.episode.turns": 2,
        "agentkit.library.version": agent.library.version,
        "agentkit.library.size": 1,
    }


def test_the_span_of_a_request_tells_what_was_asked_for_and_spent(telemetry) -> None:
    """It has the settings that were given, the reported model, finish reason and tokens."""
    settings = ModelSettings(temperature=0.0, top_p=0.9, max_tokens=64, seed=7)
    agent = Agent(
        ScriptedModel([ASKS, ANSWERS]), tools=[add], settings=settings, tracing=telemetry.tracing()
    )
    agent.run_sync("What is 1 + 2?")
    span = next(span for span in telemetry.spans if span.name == "chat scripted")
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.max_tokens": 64,
        "gen_ai.request.seed": 7,
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 40,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.usage.cache_read.input_tokens": 8,
    }


def test_the_span_of_a_call_names_the_tool_and_its_revision(telemetry) -> None:
    """It has the tool's name, text and digest, its place in the DAG, and how the call went."""
    agent = Agent(ScriptedModel([ASKS, ANSWERS]), tools=[add], tracing=telemetry.tracing())
    agent.run_sync("What is 1 + 2?")
    span = telemetry.named("execute_tool add")
    assert span.kind is SpanKind.INTERNAL
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Add two numbers.",
        "agentkit.tool.version": add.definition.digest[:12],
        "agentkit.tool.digest": add.definition.digest,
        "agentkit.tool.depth": 0,
        "agentkit.tool.flat": 1,
        "agentkit.tool.status": "ok",
        "agentkit.tool.attempts": 1,
        "agentkit.library.version": 0,
    }


def test_searches_for_tools_have_spans(telemetry) -> None:
    """The first search hangs below the run; one that the model makes, below its call."""

    @tool
    def subtract(a: int, b: int) -> int:
        """Take one number from another."""
        return a - b

    search = ToolCall(call_id="s", name="search_tools", arguments={"query": "subtract"})
    many = [add, subtract, *(_numbered(number) for number in range(40))]
    agent = Agent(ScriptedModel([[search], "Done."]), tools=many, tracing=telemetry.tracing())
    agent.run_sync("Add two numbers.")
    assert telemetry.tree() == [
        "invoke_agent agent",
        "  retrieval",
        "  chat scripted",
        "  execute_tool search_tools",
        "    retrieval",
        "  chat scripted",
    ]
    span = next(span for span in telemetry.spans if span.name == "retrieval")
    assert span.attributes["agentkit.library.size"] == 42
    assert span.attributes["agentkit.retrieval.offered.size"] >= 1


def _numbered(number: int):
    def work(x: int) -> int:
        return x + number

    work.__name__ = f"work_{number}"
    work.__doc__ = f"Shift by {number}."
    return tool(work)


def ask(library: Library, tracer: object, name: str, **arguments: object):
    """One run that calls one tool."""
    call = ToolCall(call_id="c1", name=name, arguments=arguments)
    agent = Agent(
        ScriptedModel([[call], "Done."]),
        library=library,
        tracing=tracer,
        tool_policy=ToolPolicy(retries=0),
    )
    return agent.run_sync("Go.")


def test_all_calls_are_told_each_below_its_composite(telemetry, composites) -> None:
    """With ``all`` the tree of spans is the tree of calls, in program order."""
    ask(composites, telemetry.tracing(child_spans="all"), "both", x=2)
    assert telemetry.tree() == [
        "invoke_agent agent",
        "  chat scripted",
        "  execute_tool both",
        "    execute_tool half",
        "      execute_tool double",
        "      execute_tool invert",
        "    execute_tool double",
        "  chat scripted",
    ]
    levels = [span.attributes.get("agentkit.tool.level") for span in telemetry.spans]
    assert [level for level in levels if level] == [1, 2, 2, 1]


@pytest.mark.parametrize("wanted", ["errors", "all"])
def test_a_composite_that_fails_tells_all_that_led_to_it(telemetry, composites, wanted) -> None:
    """Its calls are there up to the one that failed, which has the kind of its error."""
    ask(composites, telemetry.tracing(child_spans=wanted), "both", x=0)
    assert telemetry.tree()[2:6] == [
        "  execute_tool both",
        "    execute_tool half",
        "      execute_tool double",
        "      execute_tool invert",
    ]
    failed = {s.name: s for s in telemetry.spans if s.status.status_code is StatusCode.ERROR}
    kinds = {name: span.attributes["error.type"] for name, span in failed.items()}
    assert kinds == {
        "execute_tool both": "child_failed",
        "execute_tool half": "ZeroDivisionError",
        "execute_tool invert": "ZeroDivisionError",
    }


def test_a_child_that_hangs_is_told_when_time_is_up(telemetry, composing) -> None:
    """Of a composite that timed out one sees where it was."""

    @tool(effects=Effects(reads=True, writes=False))
    async def hang(x: int) -> int:
        """Never answer."""
        await asyncio.sleep(3600)
        return x

    library = composing([hang], "def wait(x: int) -> int:\n    return hang(x)")
    call = ToolCall(call_id="c1", name="wait", arguments={"x": 1})
    Agent(
        ScriptedModel([[call], "Done."]),
        library=library,
        tracing=telemetry.tracing(),
        tool_policy=ToolPolicy(timeout_seconds=0.02, retries=0),
    ).run_sync("Go.")
    assert telemetry.named("execute_tool wait").attributes["error.type"] == "timeout"
    assert telemetry.named("execute_tool hang").attributes["error.type"] == "CancelledError"


def test_no_children_are_told_when_switched_off(telemetry, composites) -> None:
    """With ``off`` a failed composite is one span."""
    ask(composites, telemetry.tracing(child_spans="off"), "both", x=0)
    assert len(telemetry.spans) == 4


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
