"""What spans say: messages and arguments where they are wanted, and failures."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import StatusCode
from support.media import RED
from support.model_server import FaultyServer
from support.server_steps import ErrorStatus, Reply

from agentkit import Agent, Tool, ToolDefinition, tool
from agentkit.agent import Approval, ToolPolicy
from agentkit.errors import ModelConnectionError, ModelRetry, ModelStatusError, RunError
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.models.base import ModelResponse
from agentkit.models.openai_compatible import OpenAICompatibleModel
from agentkit.models.retries import RetryPolicy
from agentkit.testing import ScriptedModel
from agentkit.tracing import ContentPolicy

SECRET = "wombat-4711"


@tool
def remember(note: str, fail: str = "") -> dict[str, str]:
    """Keep a note."""
    if fail == "error":
        raise ValueError(f"cannot keep {note}")
    if fail == "retry":
        raise ModelRetry(f"not {note}, please")
    if fail == "constraint":
        raise KeyError(note)
    return {"kept": note}


@tool(requires_approval=True)
def forget(note: str) -> str:
    """Forget a note."""
    return f"forgot {note}"


def numbers_alone(text: str) -> str:
    """A redaction that fails where there is anything else, and says at what."""
    return str(int(text))


def call(name: str, number: int, **arguments: object) -> ToolCall:
    return ToolCall(call_id=f"c{number}", name=name, arguments=arguments)


CALLS = [
    call("remember", 1, note=SECRET),
    call("remember", 2, note=SECRET, fail="error"),
    call("remember", 3, note=SECRET, fail="retry"),
    call("remember", 4, note=SECRET, fail="constraint"),
    call("remember", 5, note=[SECRET]),
    call("remember", 6, **{SECRET: 1}),
    call(f"forget_{SECRET}", 7, note=1),
    call("forget", 8, note=SECRET),
    ToolCall(call_id="c9", name="remember", malformed=f"{{{SECRET}"),
]
ANSWER = ModelResponse(message=AssistantMessage(text=f"Kept {SECRET}."), finish_reason="stop")


def chatty(tracer: object, *answers: object) -> Agent:
    """An agent all of whose texts hold the secret."""
    script = answers or (CALLS, CALLS[:1], ANSWER)
    return Agent(
        ScriptedModel(script),
        tools=[
            remember,
            forget,
            *(Tool(definition=ToolDefinition(name=f"work_{n}")) for n in range(40)),
        ],
        instructions=f"Never tell {SECRET}.",
        tool_policy=ToolPolicy(approve=lambda *_: False),
        refine="none",
        tracing=tracer,
    )


def test_nothing_that_was_said_leaves_by_default(telemetry, caplog) -> None:
    """No text, argument, result, instruction, or message of an error is in spans."""
    agent = chatty(telemetry.tracing())
    agent.run_sync(f"Keep {SECRET}, and forget {SECRET}.")
    broken = ModelStatusError(f"bad {SECRET}", status=400, body=SECRET, retry_after=None)
    with pytest.raises(RunError):
        chatty(telemetry.tracing(), broken).run_sync(f"Keep {SECRET}.")
    assert len(telemetry.spans) > 15
    assert SECRET not in telemetry.everything()
    assert all(span.status.description is None for span in telemetry.spans)
    assert all(event.name != "exception" for span in telemetry.spans for event in span.events)
    assert SECRET not in caplog.text


def test_pictures_are_named_and_not_recorded(telemetry) -> None:
    """A span is no place for bytes."""
    chatty(telemetry.tracing(content=ContentPolicy()), ANSWER).run_sync(["What is this?", RED])
    (chat,) = (span for span in telemetry.spans if span.name == "chat scripted")
    (asked,) = json.loads(chat.attributes["gen_ai.input.messages"])
    assert [part["content"] for part in asked["parts"]] == ["What is this?", RED.label]
    assert RED.base64 not in telemetry.everything()


def test_content_has_the_shape_of_the_conventions(telemetry) -> None:
    """Messages are roles with parts; instructions stand beside them."""
    agent = chatty(telemetry.tracing(content=ContentPolicy()), [CALLS[0]], ANSWER)
    agent.run_sync("Keep it.")
    chats = [span for span in telemetry.spans if span.name == "chat scripted"]
    asked = json.loads(chats[1].attributes["gen_ai.input.messages"])
    assert [message["role"] for message in asked] == ["user", "assistant", "tool"]
    assert asked[1]["parts"] == [
        {"type": "tool_call", "id": "c1", "name": "remember", "arguments": {"note": SECRET}}
    ]
    assert json.loads(chats[1].attributes["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": f"Kept {SECRET}."}],
            "finish_reason": "stop",
        }
    ]
    assert json.loads(chats[0].attributes["gen_ai.system_instructions"]) == [
        {"type": "text", "content": f"Never tell {SECRET}."}
    ]


def test_calls_have_their_arguments_and_results(telemetry) -> None:
    """Arguments and values are JSON; a failed call has what the model was told."""
    chatty(telemetry.tracing(content=ContentPolicy())).run_sync("Keep it.")
    spans = {span.attributes.get("gen_ai.tool.call.id"): span for span in telemetry.spans}
    assert json.loads(spans["c1"].attributes["gen_ai.tool.call.arguments"]) == {"note": SECRET}
    assert json.loads(spans["c1"].attributes["gen_ai.tool.call.result"]) == {"kept": SECRET}
    assert "ValueError" in json.loads(spans["c2"].attributes["gen_ai.tool.call.result"])
    assert json.loads(spans["c9"].attributes["gen_ai.tool.call.arguments"]) == f"{{{SECRET}"


def test_an_error_has_its_message_with_content(telemetry) -> None:
    """The exception is an event of the span that it ended."""
    broken = ModelStatusError("the server said no", status=400, body="", retry_after=None)
    with pytest.raises(RunError):
        chatty(telemetry.tracing(content=ContentPolicy()), broken).run_sync("Go.")
    (event,) = telemetry.named("chat scripted").events
    assert event.name == "exception"
    assert event.attributes["exception.message"] == "the server said no"


def test_redaction_sees_every_text_before_it_is_cut(telemetry) -> None:
    """What ``redact`` takes out is in none of the attributes, also not in part."""
    policy = ContentPolicy(max_chars=20, redact=lambda text: text.replace(SECRET, "[gone]"))
    agent = chatty(telemetry.tracing(content=policy))
    agent.run_sync(f"Keep {SECRET}.")
    assert SECRET not in telemetry.everything()
    assert SECRET[:8] not in telemetry.everything()
    assert "[gone]" in telemetry.everything()


def test_a_redaction_that_fails_lets_nothing_out(telemetry, caplog) -> None:
    """The span is there without content, the error is counted, and its message kept back."""
    policy = ContentPolicy(redact=numbers_alone)
    agent = chatty(telemetry.tracing(content=policy), [CALLS[0]], ANSWER)
    assert agent.run_sync(f"Keep {SECRET}.").output == f"Kept {SECRET}."
    assert agent.tracing.errors == len(telemetry.spans) == 5
    assert SECRET not in telemetry.everything()
    assert "tracing failed (ValueError)" in caplog.text
    assert "return str(int(text))" in caplog.text  # where it was
    assert SECRET not in caplog.text


def test_the_oldest_messages_are_left_out_of_a_long_attribute() -> None:
    """An attribute stays within its bound, and the newest message is always there."""
    said = [AssistantMessage(text=f"{number} {'x' * 90}") for number in range(40)]
    kept = json.loads(ContentPolicy(max_chars=100).newest(said))
    assert len(json.dumps(kept)) <= 1_700
    assert [one["parts"][0]["content"].split()[0] for one in kept][-2:] == ["38", "39"]


@given(secret=st.text(min_size=3, alphabet=st.characters(exclude_categories=["C"])))
def test_no_secret_survives_redaction(secret: str) -> None:
    """Wherever it stands in a value, also as a key."""
    policy = ContentPolicy(redact=lambda text: text.replace(secret, ""))
    value = {secret: [secret, {"a": f"x{secret}y", f"{secret}b": (secret,)}]}
    shown = json.loads(policy.json(value))
    assert shown == {"": ["", {"a": "xy".replace(secret, ""), "b".replace(secret, ""): [""]}]}


@tool
def divide(a: float, b: float) -> float:
    """Divide."""
    return a / b


@tool(requires_approval=True)
def delete(name: str) -> str:
    """Delete something."""
    return name


def failing_call(name: str, /, **arguments: object) -> ToolCall:
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
        (failing_call("divide", a=1, b=0), "tool_error", "ZeroDivisionError", None),
        (
            failing_call("divide", a="x", b=1),
            "invalid_arguments",
            "invalid_arguments",
            "argument_mismatch",
        ),
        (failing_call("divid", a=1), "unknown_tool", "unknown_tool", "invalid_tool_call"),
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
    run(telemetry, failing_call("divide", a="x", b=1))
    assert telemetry.tree()[2:4] == ["  execute_tool divide", "    run_guardrail validation"]
    assert dict(telemetry.named("run_guardrail validation").attributes) == {
        "gen_ai.operation.name": "run_guardrail",
        "gen_ai.tool.name": "divide",
        "agentkit.guardrail.name": "validation",
        "agentkit.guardrail.allowed": False,
        "agentkit.guardrail.cause": "invalid_arguments",
    }


@pytest.mark.parametrize(
    ("decision", "cause"), [(True, None), (Approval(approved=False, reason="not today"), "denied")]
)
def test_every_question_to_a_person_has_a_span(telemetry, decision, cause) -> None:
    """Approval takes as long as the person does; the reason is content."""
    run(telemetry, failing_call("delete", name="x"), approve=lambda *_: decision)
    about = telemetry.named("run_guardrail approval").attributes
    assert about["agentkit.guardrail.allowed"] is (cause is None)
    assert about.get("agentkit.guardrail.cause") == cause
    assert "not today" not in telemetry.everything()


def test_a_deferred_call_is_no_error(telemetry) -> None:
    """It waits; the run that resumes it names the one that waited, and has ids of its own."""
    agent = Agent(
        ScriptedModel([[failing_call("delete", name="x")], "Gone."]),
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
async def test_an_exporter_that_raises_breaks_no_run(telemetry, where, caplog) -> None:
    """Runs are answered, streamed or not; errors are counted, and logged without a flood."""
    telemetry.provider.add_span_processor(Bad(*where))
    asked = failing_call("divide", a=1, b=2)
    agent = Agent(
        ScriptedModel([[asked], "Done.", [asked], "Done."]),
        tools=[divide],
        tracing=telemetry.tracing(),
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
