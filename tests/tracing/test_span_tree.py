"""The tree of spans that a run leaves, and the contexts in which it hangs."""

from __future__ import annotations

import asyncio
import threading

import pytest
from opentelemetry import context, propagate, trace
from opentelemetry.trace import SpanKind, StatusCode

from agentkit import Agent, Tool, ToolDefinition, tool
from agentkit.agent.types import TurnFinished
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ModelRequest, ModelResponse, ModelSettings, TextDelta
from agentkit.testing import ScriptedModel
from agentkit.tracing import Tracing


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
    many = [add, subtract, *(Tool(definition=ToolDefinition(name=f"work_{n}")) for n in range(40))]
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


CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(call_id=f"c{at}", name=name) for at, name in enumerate(names)]


def parents(telemetry, name: str) -> list[str]:
    """Names of the parents of all spans of one name."""
    names = {span.context.span_id: span.name for span in telemetry.spans}
    return [names[s.parent.span_id] for s in telemetry.spans if s.name == name]


@pytest.fixture
def inside(telemetry):
    """Tools, blocking and not, that make a span of their own."""
    tracer = telemetry.provider.get_tracer("tests")

    @tool
    def in_thread() -> str:
        """Work in a thread."""
        with tracer.start_as_current_span("work of in_thread"):
            return threading.current_thread().name

    @tool
    async def in_task() -> str:
        """Work in a task."""
        await asyncio.sleep(0)
        with tracer.start_as_current_span("work of in_task"):
            await asyncio.sleep(0)
        return "done"

    return [in_thread, in_task]


def test_what_tools_do_hangs_below_their_calls(telemetry, inside) -> None:
    """Calls that run side by side, in threads and tasks, do not mix up their spans."""
    script = [calls("in_thread", "in_task", "in_thread", "in_task"), "Done."]
    agent = Agent(ScriptedModel(script), tools=inside, tracing=telemetry.tracing())
    result = agent.run_sync("Go.")
    assert result.episode.results[0].value == "agentkit-tool"
    for kind in ("in_thread", "in_task"):
        assert parents(telemetry, f"work of {kind}") == [f"execute_tool {kind}"] * 2
    works = [span for span in telemetry.spans if span.name.startswith("work")]
    assert len({span.parent.span_id for span in works}) == 4


def test_the_caller_is_the_parent(telemetry) -> None:
    """A run is a part of the trace that its caller is in, also through ``run_sync``."""
    token = context.attach(propagate.extract({"traceparent": CALLER}))
    try:
        agent = Agent(ScriptedModel(["Hi."]), tracing=telemetry.tracing())
        result = agent.run_sync("Hi")
    finally:
        context.detach(token)
    span = telemetry.named("invoke_agent agent")
    assert trace.format_trace_id(span.context.trace_id) == CALLER.split("-")[1]
    assert trace.format_span_id(span.parent.span_id) == CALLER.split("-")[2]
    assert result.episode.metadata["trace_id"] == CALLER.split("-")[1]


async def test_a_cancelled_run_ends_its_spans(telemetry) -> None:
    """Ctrl-C or a timeout around a run leaves no span open."""

    @tool
    async def hang() -> None:
        """Never return."""
        await asyncio.sleep(3600)

    agent = Agent(ScriptedModel([calls("hang")]), tools=[hang], tracing=telemetry.tracing())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agent.run("Go."), timeout=0.05)
    kinds = {span.name: span.attributes.get("error.type") for span in telemetry.spans}
    assert kinds == {
        "invoke_agent agent": "CancelledError",
        "chat scripted": None,
        "execute_tool hang": "CancelledError",
    }


def test_without_an_sdk_nothing_happens() -> None:
    """The API alone gives spans that do nothing, and episodes have no ids of a trace."""
    result = Agent(ScriptedModel(["Hi."]), tracing=Tracing()).run_sync("Hi")
    assert result.output == "Hi."
    assert "trace_id" not in result.episode.metadata


class Speaking(ScriptedModel):
    """A model that streams word by word, with a span of its own at each."""

    def __init__(self, tracer: trace.Tracer) -> None:
        super().__init__(["One two three."])
        self._tracer = tracer

    async def stream(self, request: ModelRequest):
        for word in ("One ", "two ", "three."):
            with self._tracer.start_as_current_span("network"):
                await asyncio.sleep(0)
            yield TextDelta(text=word)
        yield await self.complete(request)


@pytest.mark.parametrize("leave_at", ["first text", "first turn"])
async def test_leaving_a_stream_ends_its_spans(telemetry, inside, leave_at) -> None:
    """The run that is given up has ended spans, a status, and an episode that says where."""

    class Slow(Speaking):
        async def stream(self, request: ModelRequest):
            async for event in super().stream(request):
                yield event
                await asyncio.sleep(0.01)

    model = Slow(telemetry.provider.get_tracer("tests"))
    model._answers = [calls("in_task"), "Later."]
    agent = Agent(model, tools=inside, store="memory:", tracing=telemetry.tracing())
    events = agent.stream("Go.")
    wanted = TextDelta if leave_at == "first text" else TurnFinished
    async for event in events:
        if isinstance(event, wanted):
            break
    await events.aclose()
    span = telemetry.named("invoke_agent agent")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "CancelledError"
    (episode,) = agent.store.select()
    assert episode.stop_reason == "cancelled"
    assert episode.metadata["span_id"] == trace.format_span_id(span.context.span_id)
    assert {s.name for s in telemetry.spans} >= {"invoke_agent agent", "chat scripted"}
