"""What was said stays here, unless somebody asks for it; then it has the shape of the conventions."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from support.media import RED

from agentkit import Agent, tool
from agentkit.agent import ToolPolicy
from agentkit.errors import ModelRetry, ModelStatusError, RunError
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.models.base import ModelResponse
from agentkit.testing import ScriptedModel
from agentkit.tracing import ContentPolicy, Tracing

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
        tools=[remember, forget, *(_numbered(n) for n in range(40))],
        instructions=f"Never tell {SECRET}.",
        tool_policy=ToolPolicy(approve=lambda *_: False),
        refine="none",
        tracing=tracer,
    )


def _numbered(number: int):
    def work(x: int) -> int:
        return x + number

    work.__name__ = f"work_{number}"
    work.__doc__ = f"Shift by {number}."
    return tool(work)


def test_nothing_that_was_said_leaves_by_default(telemetry, composites, caplog) -> None:
    """No text, argument, result, instruction, or message of an error is in spans or metrics."""
    agent = chatty(telemetry.tracing(child_spans="all"))
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
    """Messages are roles with parts; instructions and offered tools stand beside them."""
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
    offered = json.loads(chats[0].attributes["gen_ai.tool.definitions"])
    kept = next(one for one in offered if one["name"] == "remember")
    assert kept["type"] == "function"
    assert kept["parameters"]["required"] == ["note"]


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
    agent = chatty(telemetry.tracing(content=policy, child_spans="all"))
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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(), key=st.text())
def test_no_text_whatever_leaves_by_default(new_telemetry, text: str, key: str) -> None:
    """Requests, arguments, results, answers and made-up names of tools stay here."""
    telemetry = new_telemetry()
    said = f"§{text}§"
    asks = [
        ToolCall(call_id="c1", name="remember", arguments={"note": said}),
        ToolCall(call_id="c2", name="remember", arguments={"note": said, f"§{key}": said}),
        ToolCall(call_id="c3", name=said, arguments={}),
    ]
    model = ScriptedModel([asks, said])
    Agent(model, tools=[remember], instructions=said, tracing=telemetry.tracing()).run_sync(said)
    assert "§" not in telemetry.everything()
    assert "\\u00a7" not in telemetry.everything()


@given(secret=st.text(min_size=3, alphabet=st.characters(exclude_categories=["C"])))
def test_no_secret_survives_redaction(secret: str) -> None:
    """Wherever it stands in a value, also as a key."""
    policy = ContentPolicy(redact=lambda text: text.replace(secret, ""))
    value = {secret: [secret, {"a": f"x{secret}y", f"{secret}b": (secret,)}]}
    shown = json.loads(policy.json(value))
    assert shown == {"": ["", {"a": "xy".replace(secret, ""), "b".replace(secret, ""): [""]}]}


def test_runs_that_are_not_sampled_cost_no_content() -> None:
    """Nothing is redacted for a span that nobody keeps; what is counted is counted all the same."""
    seen: list[str] = []

    def noting(text: str) -> str:
        seen.append(text)
        return text

    reader = InMemoryMetricReader()
    tracer = Tracing(
        tracer_provider=TracerProvider(sampler=ALWAYS_OFF),
        meter_provider=MeterProvider(metric_readers=[reader]),
        content=ContentPolicy(redact=noting),
    )
    agent = chatty(tracer, [CALLS[0]], ANSWER)
    assert agent.run_sync("Keep it.").output == f"Kept {SECRET}."
    assert (seen, agent.tracing.errors) == ([], 0)
    assert "gen_ai.client.operation.duration" in reader.get_metrics_data().to_json()
