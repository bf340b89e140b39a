"""What reaches a provider through its SDK, word for word; several loops; an SDK that is absent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentkit.errors import MissingExtraError
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models import ModelRequest, ModelSettings
from agentkit.models.hosted.model import HostedModel
from agentkit.models.resolve import resolve_model
from agentkit.testing import ProviderServer, Reply
from agentkit.tools import ToolDefinition

PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FACTORIAL = ToolDefinition.from_schema("math.factorial", "The product of 1 to n.", PARAMETERS)
CALL = ToolCall(call_id="c1", name="math_factorial", arguments={"n": 4})
OURS = replace(CALL, name="math.factorial")
REQUEST = ModelRequest(
    messages=(
        SystemMessage(text="Be brief."),
        UserMessage(text="4!?"),
        AssistantMessage(text="Well.", tool_calls=(OURS,)),
        ToolMessage(call_id="c1", name="math.factorial", text="24"),
    ),
    tools=(FACTORIAL,),
    tool_choice="required",
    settings=ModelSettings(temperature=0.0, max_tokens=50, extra={"service_tier": "auto"}),
)
NAMED = {"name": "math_factorial", "description": "The product of 1 to n."}
CHAT = {
    "model": "gpt-4o-mini",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "4!?"},
        {
            "role": "assistant",
            "content": "Well.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "math_factorial", "arguments": '{"n":4}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "24"},
    ],
    "tools": [{"type": "function", "function": {**NAMED, "parameters": PARAMETERS}}],
    "tool_choice": "required",
    "temperature": 0.0,
    "max_tokens": 50,
    "service_tier": "auto",
}
RESPONSES = {
    "model": "gpt-4o-mini",
    "store": False,
    "input": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "4!?"},
        {"role": "assistant", "content": "Well."},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "math_factorial",
            "arguments": '{"n":4}',
        },
        {"type": "function_call_output", "call_id": "c1", "output": "24"},
    ],
    "tools": [{"type": "function", **NAMED, "parameters": PARAMETERS, "strict": False}],
    "tool_choice": "required",
    "temperature": 0.0,
    "max_output_tokens": 50,
    "service_tier": "auto",
}
MARK = {"cache_control": {"type": "ephemeral"}}
MESSAGES = {
    "model": "gpt-4o-mini",
    "max_tokens": 50,
    "system": [{"type": "text", "text": "Be brief.", **MARK}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "4!?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Well."},
                {"type": "tool_use", "id": "c1", "name": "math_factorial", "input": {"n": 4}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "24"}],
        },
    ],
    "tools": [{**NAMED, "input_schema": PARAMETERS, **MARK}],
    "tool_choice": {"type": "any"},
    "temperature": 0.0,
    "service_tier": "auto",
}
LITELLM = pytest.param(
    "litellm",
    CHAT,
    marks=pytest.mark.filterwarnings("ignore"),  # its own; here they would be errors
)
SDKS = ["openai", "openai-responses", "anthropic"]
Opener = Callable[[str, ProviderServer], HostedModel]


@pytest.fixture
def open_hosted(monkeypatch: pytest.MonkeyPatch, need: Callable[[str], None]) -> Opener:
    """Opens a model of an SDK at a server; skips where the SDK is not installed."""

    def open_at(name: str, server: ProviderServer) -> Any:
        need(name)
        for provider, url in (("OPENAI", server.base_url), ("ANTHROPIC", server.root_url)):
            monkeypatch.setenv(f"{provider}_BASE_URL", url)
            monkeypatch.setenv(f"{provider}_API_KEY", "sk-test-secret")
        return resolve_model(f"{name}:{'openai/' * (name == 'litellm')}gpt-4o-mini")

    return open_at


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("name", "expected"),
    [("openai", CHAT), ("openai-responses", RESPONSES), ("anthropic", MESSAGES), LITELLM],
)
async def test_request_on_the_wire(open_hosted, name, expected, streamed) -> None:
    """The whole body is what the provider documents: nothing is lost, and nothing comes along."""
    with ProviderServer([Reply(tool_calls=[CALL])]) as server:
        async with open_hosted(name, server) as model:
            if streamed:
                *_, response = [event async for event in model.stream(REQUEST)]
            else:
                response = await model.complete(REQUEST)
        sent = dict(server.requests[0].body)
    assert response.message.tool_calls == (OURS,)
    if streamed:
        assert sent.pop("stream") is True
        options = sent.pop("stream_options", None)  # only chat completions count when asked to
        assert options == ({"include_usage": True} if expected is CHAT else None)
    sent.pop("stream", None)  # litellm says that it does not stream
    assert sent == expected


@pytest.mark.parametrize("name", SDKS)
def test_several_event_loops(open_hosted, question, name) -> None:
    """A model outlives the loops of several ``asyncio.run``."""
    with ProviderServer(["hello there"] * 2) as server:
        model = open_hosted(name, server)
        texts = [asyncio.run(model.complete(question)).message.text for _ in range(2)]
    assert texts == ["hello there"] * 2


@pytest.mark.parametrize("name", [*SDKS, "litellm"])
def test_absent_sdk_names_the_pip_line(monkeypatch: pytest.MonkeyPatch, name) -> None:
    """A name whose extra is absent says what to install."""
    sdk = name.partition("-")[0]
    monkeypatch.setitem(sys.modules, sdk, None)
    with pytest.raises(MissingExtraError, match=rf'pip install "agentkit-evolve\[{sdk}\]"'):
        resolve_model(f"{name}:some/model")


def test_litellm_without_mcp_names_the_pip_line(monkeypatch, need) -> None:
    """Without that package litellm fails on tools, in words of its own; ours come before."""
    need("litellm")
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtraError, match=r'pip install "agentkit-evolve\[litellm\]"'):
        asyncio.run(resolve_model("litellm:openai/gpt-4o-mini").complete(REQUEST))
