"""One question, one answer, over each transport; token ids and reasoning on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.model_server import FaultyServer, ProviderServer
from support.server_steps import RawReply, Reply

from agentkit import Agent
from agentkit.errors import ModelResponseError, UsageError
from agentkit.messages import (
    AssistantMessage,
    SystemMessage,
    TokenIds,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models import (
    OpenAICompatibleModel,
    Price,
    PromptedModel,
    ReasoningDelta,
    TextDelta,
    openai_model,
    resolve_model,
)
from agentkit.models.base import ModelRequest, ModelSettings
from agentkit.tools.definition import ToolDefinition

FACTORIAL = ToolDefinition.from_schema(
    "math.factorial",
    "The product of 1 to n.",
    {
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "Not negative."}},
        "required": ["n"],
    },
)


async def test_request_on_the_wire(open_model) -> None:
    """Every kind of message, the tools and the settings arrive in the protocol's form."""
    call = ToolCall(call_id="c1", name="math.factorial", arguments={"n": 4})
    request = ModelRequest(
        messages=(
            SystemMessage(text="Be brief."),
            UserMessage(text="4!? ü"),
            AssistantMessage(tool_calls=(call,)),
            ToolMessage(call_id="c1", name="math.factorial", text="24"),
        ),
        tools=(FACTORIAL,),
        tool_choice="required",
        settings=ModelSettings(temperature=0, max_tokens=7, seed=3, extra={"top_k": 5}),
    )
    with FaultyServer(["ok"]) as server:
        async with open_model(server, headers={"X-Team": "a"}, api_key="k") as model:
            await model.complete(request)
        received = server.requests[0]
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == "Bearer k"
    assert received.headers["x-team"] == "a"
    sent = dict(received.body)
    assert sent.pop("tools") == [
        {
            "type": "function",
            "function": {
                "name": "math_factorial",
                "description": "The product of 1 to n.",
                "parameters": FACTORIAL.parameters_schema,
            },
        }
    ]
    assert sent == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "4!? ü"},
            {
                "role": "assistant",
                "content": None,
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
        "tool_choice": "required",
        "temperature": 0,
        "max_tokens": 7,
        "seed": 3,
        "top_k": 5,
    }


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (
            {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
                "required": ["a"],
                "additionalProperties": False,
            },
            True,
        ),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, None),
        ({"type": "array", "minItems": 2}, None),
    ],
)
async def test_output_schema_becomes_a_response_format(
    open_model, question, schema, strict
) -> None:
    """Strict mode is asked for exactly where the schema allows it."""
    with FaultyServer(["{}"]) as server:
        async with open_model(server) as model:
            await model.complete(replace(question, output_schema=schema))
        described = server.requests[0].body["response_format"]
    assert described["type"] == "json_schema"
    assert described["json_schema"]["schema"] == schema
    assert described["json_schema"].get("strict") is strict


async def test_connection_is_reused(open_model, question) -> None:
    """Three requests, one of them refused, go over one connection."""
    refusal = RawReply(status=503, body={"error": {"message": "busy"}})
    with FaultyServer(["a", refusal, "b"]) as server:
        async with open_model(server) as model:
            await model.complete(question)
            await model.complete(question)
        assert (len(server.requests), server.connections) == (3, 1)


def test_each_event_loop_has_its_own_connections(open_model, question) -> None:
    """A model outlives the loops of several ``asyncio.run``, and leaves no connection open."""
    with FaultyServer(["a", "b", "c"]) as server:
        model = open_model(server)
        texts = [asyncio.run(model.complete(question)).message.text for _ in range(3)]
        assert texts == ["a", "b", "c"]
        assert server.connections == 3


async def test_close_frees_the_connections_and_the_model_goes_on(open_model, question) -> None:
    """After ``close`` the next request opens a new connection."""
    with FaultyServer(["a", "b"]) as server:
        model = open_model(server)
        await model.complete(question)
        await model.close()
        await model.complete(question)
        await model.close()
        assert server.connections == 2


async def test_cost_is_reported_when_a_price_is_known(open_model, question) -> None:
    """Cached tokens are counted and charged at their own price."""
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    prices = {"m": Price(prompt=1.0, cached=0.5, completion=2.0)}
    with FaultyServer([Reply(text="a", usage=usage), Reply(text="b", usage=usage)]) as server:
        async with open_model(server, prices=prices) as model:
            known = (await model.complete(question)).usage
        async with open_model(server, prices={"another": prices["m"]}) as model:
            unknown = (await model.complete(question)).usage
    assert known.cached_tokens == 400
    assert known.cost_usd == pytest.approx((600 + 200 + 200) / 1e6)
    assert unknown.cost_usd is None


async def test_an_injected_client_is_used_and_left_open(question) -> None:
    """A client of the caller's brings its own headers and stays open."""
    import httpx

    with FaultyServer(["a"]) as server:
        async with httpx.AsyncClient(headers={"X-Mine": "h"}) as client:
            model = OpenAICompatibleModel("m", base_url=server.base_url, client=client)
            await model.complete(question)
            await model.close()
            assert not client.is_closed
        assert server.requests[0].headers["x-mine"] == "h"


async def test_openai_by_name_sends_what_its_sdk_would(monkeypatch, question) -> None:
    """By name, OpenAI is asked with the headers of its SDK's variables."""
    for name, value in {
        "OPENAI_API_KEY": "sk-test-secret",
        "OPENAI_ORG_ID": "org-1",
        "OPENAI_PROJECT_ID": "proj-1",
    }.items():
        monkeypatch.setenv(name, value)
    with FaultyServer(["hello there"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        async with openai_model("gpt-4o-mini") as model:
            await model.complete(question)
        (sent,) = server.requests
    named = ("authorization", "openai-organization", "openai-project")
    assert [sent.headers.get(name) for name in named] == [
        "Bearer sk-test-secret",
        "org-1",
        "proj-1",
    ]


def test_key_and_url_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """``OPENAI_BASE_URL`` names the server; without key or URL the message says what to set."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert repr(OpenAICompatibleModel("m")).endswith("base_url='http://localhost:1/v1')")
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(UsageError, match="set OPENAI_API_KEY"):
        OpenAICompatibleModel("m")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "localhost:80"}, "not an http"),
        ({"base_url": "http://x/v1", "transport": "curl"}, "unknown transport"),
        ({"base_url": "http://x/v1", "client": object()}, "does not fit"),
    ],
)
def test_misuse_is_refused_at_once(options, message) -> None:
    """A model that could never answer is not constructed."""
    with pytest.raises(UsageError, match=message):
        OpenAICompatibleModel("m", **options)


async def test_extra_may_not_replace_what_the_adapter_writes(open_model, question) -> None:
    """``extra`` adds fields; it does not contradict the request."""
    with FaultyServer([]) as server:
        async with open_model(server) as model:
            with pytest.raises(UsageError, match="may not set 'messages'"):
                await model.complete(
                    replace(question, settings=ModelSettings(extra={"messages": []}))
                )


async def test_what_json_can_not_hold_is_refused_before_sending(open_model, question) -> None:
    """A set among the arguments of an earlier call is the caller's mistake, and said so."""
    call = ToolCall(call_id="1", name="f", arguments={"x": {1, 2}})
    request = replace(question, messages=(AssistantMessage(tool_calls=(call,)),))
    with FaultyServer([]) as server:
        async with open_model(server) as model:
            with pytest.raises(UsageError, match="cannot be written as JSON"):
                await model.complete(request)
        assert server.requests == []


async def test_openai_itself_gets_the_newer_token_limit(question) -> None:
    """``max_completion_tokens`` for OpenAI, ``max_tokens`` for everybody else, or as asked."""
    import httpx

    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(200, json={"choices": [{"message": {"content": "well"}}]})

    asked = replace(question, settings=ModelSettings(max_tokens=7))
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        for url in ("https://api.openai.com/v1", "http://elsewhere/v1"):
            model = OpenAICompatibleModel("m", base_url=url, api_key="k", client=client)
            await model.complete(asked)
    assert [one.get("max_completion_tokens") for one in sent] == [7, None]
    assert [one.get("max_tokens") for one in sent] == [None, 7]


FIRST = TokenIds(prompt=(1, 2, 3), completion=(40, 41, 42), logprobs=(-0.5, -0.25, -2.0))


@pytest.mark.parametrize("streamed", [False, True])
async def test_response_carries_them(
    open_model: Callable[..., OpenAICompatibleModel], question: ModelRequest, streamed
) -> None:
    """Ids and log-probabilities come back unchanged, put together from a stream."""
    with ProviderServer([Reply(text="four squared is it", tokens=FIRST)]) as server:
        async with open_model(server) as model:
            events = model.stream(question) if streamed else None
            response = (
                [event async for event in events if not isinstance(event, TextDelta)][0]  # noqa: RUF015
                if events
                else await model.complete(question)
            )
    assert response.tokens == FIRST


@pytest.mark.parametrize("ids", [["1"], [1, True], [1.5], {"1": 2}, "12"])
async def test_what_is_no_token_id(open_model, question, ids) -> None:
    """Anything but whole numbers is an answer off the protocol: training on it would be wrong."""
    choice = {"message": {"content": "well"}, "token_ids": ids}
    with ProviderServer([RawReply(body={"choices": [choice]})]) as server:
        async with open_model(server) as model:
            with pytest.raises(ModelResponseError, match="no id of a token"):
                await model.complete(question)


async def test_a_probability_beyond_all_bounds_is_unknown(open_model, question) -> None:
    """JSON can not hold its logarithm; the answer and its tokens stay."""
    said = {"content": [{"logprob": -0.5}, {"logprob": -1e999}]}
    choice = {"message": {"content": "well"}, "token_ids": [1, 2], "logprobs": said}
    text = json.dumps({"choices": [choice]}).replace("-Infinity", "-1e999")
    with ProviderServer([RawReply(body=text)]) as server:
        async with open_model(server) as model:
            response = await model.complete(question)
    assert response.tokens == TokenIds(completion=(1, 2))


ASKED = ModelRequest(messages=(UserMessage(text="3 * 8?"),))
REPLY = Reply(reasoning="Three eights.", text="24")


def said(events):
    """The kinds of the deltas in order, each once, and their texts."""
    texts = {}
    for event in events:
        if isinstance(event, ReasoningDelta | TextDelta):
            kind = type(event).__name__
            texts[kind] = texts.get(kind, "") + event.text
    return texts


async def all_of(events):
    return [event async for event in events]


@pytest.fixture(params=["chat", "anthropic", "prompted"])
def model(request, monkeypatch):
    """A model at a server that thinks aloud."""
    with ProviderServer([REPLY]) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
        chat = OpenAICompatibleModel("m", base_url=server.base_url)
        if request.param == "anthropic":
            yield resolve_model("anthropic:claude")
        else:
            yield PromptedModel(chat) if request.param == "prompted" else chat


def test_reasoning_comes_before_the_answer(model):
    """It is no part of the answer's text."""
    found = asyncio.run(all_of(model.stream(ASKED)))
    assert list(said(found).items()) == [("ReasoningDelta", "Three eights."), ("TextDelta", "24")]
    assert found[-1].message.text == "24"


def test_an_agent_hands_it_on(model):
    """Whoever listens to a run hears it; the episode holds the answer."""
    found = asyncio.run(all_of(Agent(model).stream("3 * 8?")))
    assert said(found) == {"ReasoningDelta": "Three eights.", "TextDelta": "24"}
    assert found[-1].result.output == "24"
