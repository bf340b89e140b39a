"""What reaches a provider through its SDK, word for word; several loops; an SDK that is absent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from support.model_server import ProviderServer
from support.server_steps import Reply

from agentkit.errors import MissingExtraError, ModelError
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models import ModelRequest, ModelSettings
from agentkit.models.anthropic import anthropic_model
from agentkit.models.http_model import HttpModel
from agentkit.models.openai import openai_model
from agentkit.models.resolve import resolve_model
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
Opener = Callable[[str, ProviderServer], HttpModel]


def point_at(monkeypatch: pytest.MonkeyPatch, server: ProviderServer) -> None:
    """Set the variables from which every adapter takes its address and its key."""
    for provider, url in (("OPENAI", server.base_url), ("ANTHROPIC", server.root_url)):
        monkeypatch.setenv(f"{provider}_BASE_URL", url)
        monkeypatch.setenv(f"{provider}_API_KEY", "sk-test-secret")


@pytest.fixture
def open_hosted(
    monkeypatch: pytest.MonkeyPatch,
    need: Callable[[str], None],
    openai_client: Callable[[], Any],
) -> Opener:
    """Opens a model of an SDK at a server; skips where the SDK is not installed."""

    def open_at(name: str, server: ProviderServer) -> Any:
        need(name)
        point_at(monkeypatch, server)
        if name == "openai":
            return openai_model("gpt-4o-mini", client=openai_client())
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


@pytest.mark.parametrize("name", ["openai-responses", "anthropic"])
def test_several_event_loops(monkeypatch, need, question, name) -> None:
    """A model outlives the loops of several ``asyncio.run``."""
    need(name)
    with ProviderServer(["hello there"] * 2) as server:
        point_at(monkeypatch, server)
        model = resolve_model(f"{name}:gpt-4o-mini")
        texts = [asyncio.run(model.complete(question)).message.text for _ in range(2)]
    assert texts == ["hello there"] * 2


def test_absent_litellm_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name whose extra is absent says what to install."""
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingExtraError, match=r'pip install "agentkit-evolve\[litellm\]"'):
        resolve_model("litellm:some/model")


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic"])
async def test_a_name_needs_no_sdk(monkeypatch, question, name) -> None:
    """By name, OpenAI and Anthropic are asked without their SDKs."""
    monkeypatch.setitem(sys.modules, name.partition("-")[0], None)
    with ProviderServer(["hello there"]) as server:
        point_at(monkeypatch, server)
        async with resolve_model(f"{name}:m") as model:
            assert (await model.complete(question)).message.text == "hello there"


@pytest.mark.parametrize("module", ["openai", "anthropic"])
async def test_clients_that_rewrite_requests(need, question, module) -> None:
    """A client of a class of the user's own is given the request as an object."""
    need(module)
    import anthropic
    import openai

    kinds = {"openai": openai.AsyncOpenAI, "anthropic": anthropic.AsyncAnthropic}

    class Signing(kinds[module]):
        """Notes what it is to send."""

        async def post(self, path, **sent):
            bodies.append(sent["body"])
            return await super().post(path, **sent)

    bodies: list[Any] = []
    with ProviderServer(["well"]) as server:
        url = server.base_url if module == "openai" else server.root_url
        async with Signing(base_url=url, api_key="k") as client:
            maker = openai_model if module == "openai" else anthropic_model
            await maker("m", client=client).complete(question)
    assert bodies[0]["model"] == "m"


async def test_openai_by_name_needs_no_sdk(monkeypatch, question) -> None:
    """By name, OpenAI is asked without its SDK, with the headers that the SDK would send."""
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: shop\nX-Stage: test")
    with ProviderServer(["hello there"]) as server:
        point_at(monkeypatch, server)
        async with openai_model("gpt-4o-mini", prompt_cache_key="shop") as model:
            await model.complete(question)
        (sent,) = server.requests
    assert sent.body["prompt_cache_key"] == "shop"
    named = ("authorization", "openai-organization", "openai-project", "x-team", "x-stage")
    assert [sent.headers.get(name) for name in named] == [
        "Bearer sk-test-secret",
        "org-1",
        "proj-1",
        "shop",
        "test",
    ]


async def test_azure_chooses_the_deployment(monkeypatch, question, need) -> None:
    """A client that reads the request's model, as Azure's does, is given the request as fields."""
    need("openai")
    import openai

    with ProviderServer(["hello there"]) as server:
        azure = openai.AsyncAzureOpenAI(
            azure_endpoint=server.root_url, api_key="k", api_version="2026-01-01"
        )
        async with azure, openai_model("gpt-4o-mini", client=azure) as model:
            with suppress(ModelError):  # the server knows no such path
                await model.complete(question)
        (sent,) = server.requests
    assert sent.path.startswith("/openai/deployments/gpt-4o-mini/chat/completions")
    assert sent.body["messages"] == [{"role": "user", "content": "hi"}]


def test_litellm_without_mcp_names_the_pip_line(monkeypatch, need) -> None:
    """Without that package litellm fails on tools, in words of its own; ours come before."""
    need("litellm")
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtraError, match=r'pip install "agentkit-evolve\[litellm\]"'):
        asyncio.run(resolve_model("litellm:openai/gpt-4o-mini").complete(REQUEST))
