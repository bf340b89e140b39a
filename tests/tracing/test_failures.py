"""What goes wrong in a run is told, and what goes wrong in telling does no harm."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import StatusCode
from support.model_server import FaultyServer
from support.server_steps import ErrorStatus, Reply

from agentkit import Agent, tool
from agentkit.agent import ToolPolicy
from agentkit.agent.types import Approval
from agentkit.errors import ModelConnectionError, RunError
from agentkit.messages import ToolCall
from agentkit.models.openai_compatible import OpenAICompatibleModel
from agentkit.models.retries import RetryPolicy
from agentkit.testing import ScriptedModel


@tool
def divide(a: float, b: float) -> float:
    """Divide."""
    return a / b


@tool(requires_approval=True)
def delete(name: str) -> str:
    """Delete something."""
    return name


def call(name: str, /, **arguments: object) -> ToolCall:
    return ToolCall(call_id="c1", name=name, arguments=arguments)


def run(telemetry, *calls: ToolCall, **options: Any):
    """One run that makes calls and then answers."""
    agent = Agent(
        ScriptedModel([list(calls), "Done."]),
        tools=[divide, delete],
        tracing=telemetry.tracing(),
        tool_policy=ToolPolicy(retries=0, **options),
    )
    return agent.run_sync("Go.")


def test_a_failed_run_has_an_error_and_its_episode(telemetry) -> None:
    """Request and run have the kind of the error; the episode is kept and can be found."""
    broken = ModelConnectionError("nobody there")
    agent = Agent(ScriptedModel([broken]), store="memory:", tracing=telemetry.tracing())
    with pytest.raises(RunError):
        agent.run_sync("Go.")
    assert [span.attributes["error.type"] for span in telemetry.spans] == [
        "ModelConnectionError",
        "ModelConnectionError",
    ]
    assert {span.status.status_code for span in telemetry.spans} == {StatusCode.ERROR}
    about = telemetry.named("invoke_agent agent").attributes
    assert about["agentkit.episode.stop_reason"] == "error"
    (episode,) = agent.store.select()
    assert about["agentkit.episode.id"] == episode.episode_id


@pytest.mark.parametrize(
    ("asked", "kind", "error", "label"),
    [
        (call("divide", a=1, b=0), "tool_error", "ZeroDivisionError", None),
        (call("divide", a="x", b=1), "invalid_arguments", "invalid_arguments", "argument_mismatch"),
        (call("divid", a=1), "unknown_tool", "unknown_tool", "invalid_tool_call"),
        (
            ToolCall(call_id="c1", name="divide", malformed="{"),
            "malformed_arguments",
            "malformed_arguments",
            "invalid_tool_call",
        ),
    ],
)
def test_a_failed_call_has_kind_error_and_label(telemetry, asked, kind, error, label) -> None:
    """The label is that of the diagnosis, and is left out where the model may have been right."""
    run(telemetry, asked)
    (span,) = [s for s in telemetry.spans if s.name.startswith("execute_tool")]
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["agentkit.failure.kind"] == kind
    assert span.attributes["error.type"] == error
    assert span.attributes.get("agentkit.failure.label") == label


def test_a_check_that_stops_a_call_has_a_span(telemetry) -> None:
    """Arguments that break the schema are stopped by a guardrail below the call."""
    run(telemetry, call("divide", a="x", b=1))
    assert telemetry.tree()[2:4] == ["  execute_tool divide", "    run_guardrail validation"]
    about = telemetry.named("run_guardrail validation").attributes
    assert dict(about) == {
        "gen_ai.operation.name": "run_guardrail",
        "gen_ai.tool.name": "divide",
        "agentkit.guardrail.name": "validation",
        "agentkit.guardrail.allowed": False,
        "agentkit.guardrail.cause": "invalid_arguments",
    }


@pytest.mark.parametrize(
    ("decision", "allowed", "cause"),
    [(True, True, None), (Approval(approved=False, reason="not today"), False, "denied")],
)
def test_every_question_to_a_person_has_a_span(telemetry, decision, allowed, cause) -> None:
    """Approval takes as long as the person does; the reason is content."""
    run(telemetry, call("delete", name="x"), approve=lambda *_: decision)
    about = telemetry.named("run_guardrail approval").attributes
    assert about["agentkit.guardrail.allowed"] is allowed
    assert about.get("agentkit.guardrail.cause") == cause
    assert "not today" not in telemetry.everything()


def test_a_deferred_call_is_no_error(telemetry) -> None:
    """It waits; the run that resumes it names the one that waited, and has ids of its own."""
    agent = Agent(
        ScriptedModel([[call("delete", name="x")], "Gone."]),
        tools=[delete],
        store="memory:",
        tracing=telemetry.tracing(),
    )
    waiting = agent.run_sync("Delete x.")
    span = telemetry.named("execute_tool delete")
    assert span.attributes["agentkit.tool.status"] == "deferred"
    assert span.status.status_code is StatusCode.UNSET
    telemetry.exporter.clear()

    done = asyncio.run(agent.resume(waiting, approvals={"c1": True}))
    assert telemetry.tree() == [
        "invoke_agent agent",
        "  execute_tool delete",
        "    run_guardrail approval",
        "  chat scripted",
    ]
    about = telemetry.named("invoke_agent agent").attributes
    assert about["agentkit.episode.resumes"] == waiting.episode.episode_id
    assert done.episode.metadata["span_id"] != waiting.episode.metadata["span_id"]


def test_requests_that_are_sent_again_are_events(telemetry) -> None:
    """The span covers all attempts; each failure has its time, kind and wait."""
    policy = RetryPolicy(base_seconds=0.001, jitter=0)
    with FaultyServer(
        [ErrorStatus(status=503), ErrorStatus(status=429), Reply(text="Hi.")]
    ) as server:
        model = OpenAICompatibleModel("m", base_url=server.base_url, retry=policy)
        assert Agent(model, tracing=telemetry.tracing()).run_sync("Hi").output == "Hi."
    span = telemetry.named("chat m")
    assert span.attributes["agentkit.retries"] == 2
    assert span.attributes["gen_ai.provider.name"] == "openai"
    assert [event.name for event in span.events] == ["agentkit.retry"] * 2
    assert [event.attributes["error.type"] for event in span.events] == ["503", "429"]
    assert span.start_time < span.events[0].timestamp < span.events[1].timestamp < span.end_time
    assert span.status.status_code is StatusCode.UNSET


FULL = "disk full"


class Bad(SpanProcessor):
    """An exporter whose disk is full."""

    def __init__(self, *where: str) -> None:
        self.where = where

    def on_start(self, span, parent_context=None):
        if "start" in self.where:
            raise OSError(FULL)

    def on_end(self, span):
        if "end" in self.where:
            raise OSError(FULL)


@pytest.mark.parametrize("where", [["start"], ["end"], ["start", "end"]])
async def test_an_exporter_that_raises_breaks_no_run(telemetry, composites, where, caplog) -> None:
    """Runs are answered, streamed or not; errors are counted, and logged without a flood."""
    telemetry.provider.add_span_processor(Bad(*where))
    asked = call("both", x=2)
    agent = Agent(
        ScriptedModel([[asked], "Done.", [asked], "Done."]),
        library=composites,
        tracing=telemetry.tracing(child_spans="all"),
    )
    assert (await agent.run("Go.")).episode.results[0].status == "ok"
    async for _ in agent.stream("Go."):
        pass
    assert agent.tracing.errors >= 2
    logged = [record for record in caplog.records if "tracing failed (OSError)" in record.message]
    assert 1 <= len(logged) <= 1 + agent.tracing.errors.bit_length()
    assert FULL not in caplog.text


def test_tracing_without_opentelemetry_says_what_to_install() -> None:
    """Where the API is absent the error names the extra."""
    code = """
import sys
sys.modules["opentelemetry"] = None
from agentkit.errors import MissingExtraError
from agentkit.tracing import Tracing
try:
    Tracing()
except MissingExtraError as error:
    print(error.install)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ['pip install "agentkit-evolve[otel]"']


def test_an_agent_without_a_tracer_imports_no_opentelemetry() -> None:
    """Nor does the package of tracing itself."""
    code = """
import sys
from agentkit import Agent
from agentkit.testing import ScriptedModel
import agentkit.tracing.spans, agentkit.tracing.tracing
Agent(ScriptedModel(["Hi."])).run_sync("Hi")
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_postcondition_that_breaks_is_told(telemetry) -> None:
    """It stands below the call, beside what the tool did."""

    @tool(post=["result > 0"])
    def shrink(x: int) -> int:
        """Make smaller."""
        return x - 10

    model = ScriptedModel([[call("shrink", x=3)], "Done."])
    agent = Agent(
        model,
        tools=[shrink],
        tool_policy=ToolPolicy(contracts="always"),
        tracing=telemetry.tracing(),
    )
    agent.run_sync("Go.")
    about = telemetry.named("run_guardrail postcondition").attributes
    assert about["agentkit.guardrail.allowed"] is False
