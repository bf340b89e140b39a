"""Every adapter behaves alike, against one server that speaks each provider's real protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.media import RED, png
from support.model_server import ProviderServer
from support.server_steps import ErrorStatus, HalfStream, RawReply, Reply, Reset, Stall

from agentkit import Agent, Image, tool
from agentkit.errors import (
    ModelConnectionError,
    ModelResponseError,
    ModelStatusError,
    ModelTimeoutError,
    RunError,
    UsageError,
)
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models import (
    ModelRequest,
    ModelResponse,
    ModelSettings,
    OpenAICompatibleModel,
    RetryPolicy,
    StreamingChatModel,
    TextDelta,
)
from agentkit.models.anthropic import anthropic_model
from agentkit.models.base import IMAGES
from agentkit.models.litellm import litellm_model
from agentkit.models.responses import openai_responses_model
from agentkit.tools import ToolDefinition

SQUARE = ToolDefinition.from_schema(
    "math.square",
    "The square of n.",
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
ONE = ToolCall(call_id="c1", name="math_square", arguments={"n": 4})
TWO = ToolCall(call_id="c2", name="math_square", arguments={"n": 5})
ASKED = ModelRequest(messages=(UserMessage(text="4 squared?"),), tools=(SQUARE,))
KEY = "sk-test-secret"
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 7,
    "total_tokens": 107,
    "prompt_tokens_details": {"cached_tokens": 60},
}

quiet = pytest.mark.filterwarnings("ignore")  # litellm's own; here they would be errors
ADAPTERS = [
    "httpx",
    "aiohttp",
    "anthropic",
    "responses",
    pytest.param("litellm", marks=quiet),
    pytest.param("litellm-anthropic", marks=quiet),
]
OWN = [name for name in ADAPTERS if isinstance(name, str)]
"""Those that see what arrives; litellm shows its own reading of it."""

Opener = Callable[..., StreamingChatModel]


def point_at(monkeypatch: pytest.MonkeyPatch, server: ProviderServer, key: str | None) -> None:
    """Set the variables from which every adapter takes its address and its key."""
    for provider, url in (("OPENAI", server.base_url), ("ANTHROPIC", server.root_url)):
        monkeypatch.setenv(f"{provider}_BASE_URL", url)
        monkeypatch.setenv(f"{provider}_API_BASE", url)
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)
        if key is not None:
            monkeypatch.setenv(f"{provider}_API_KEY", key)


@pytest.fixture
def open_adapter(
    monkeypatch: pytest.MonkeyPatch, waits: list[float], need: Callable[[str], None]
) -> Opener:
    """Opens an adapter at a server; skips where its package is not installed."""

    async def note(seconds: float) -> None:
        waits.append(seconds)

    def open_at(
        name: str,
        server: ProviderServer,
        model: str = "gpt-4o-mini",
        *,
        attempts: int = 3,
        key: str | None = KEY,
    ):
        need(name)
        point_at(monkeypatch, server, key)
        retry = RetryPolicy(attempts=attempts, jitter=0, sleep=note)
        match name:
            case "httpx" | "aiohttp":
                return OpenAICompatibleModel(model, transport=name, retry=retry)
            case "anthropic":
                return anthropic_model(model, retry=retry)
            case "responses":
                return openai_responses_model(model, retry=retry)
        provider = "anthropic" if name == "litellm-anthropic" else "openai"
        return litellm_model(f"{provider}/{model}", retry=retry)

    return open_at


async def answer(model: StreamingChatModel, request: ModelRequest, *, streamed: bool):
    """The response, and the pieces of text before it."""
    if not streamed:
        return await model.complete(request), []
    events = [event async for event in model.stream(request)]
    assert all(isinstance(event, TextDelta) for event in events[:-1])
    assert isinstance(events[-1], ModelResponse)
    return events[-1], [event.text for event in events[:-1]]


async def collect(model: StreamingChatModel, pieces: list[str]) -> None:
    """Add the pieces of a streamed answer to ``pieces``, as far as it goes."""
    async for event in model.stream(ASKED):
        pieces.append(event.text)  # noqa: PERF401  what came before an error counts


def arguments(response: ModelResponse) -> list[tuple[str, str, object]]:
    """Each call's id, name and arguments."""
    return [(c.call_id, c.name, dict(c.arguments)) for c in response.message.tool_calls]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_text_and_usage(open_adapter, name, streamed) -> None:
    """Text arrives, in pieces when streamed, with counts of which some were cached."""
    with ProviderServer([Reply(text="one two three", usage=USAGE, piece_bytes=11)]) as server:
        async with open_adapter(name, server) as model:
            response, pieces = await answer(model, ASKED, streamed=streamed)
    assert response.message == AssistantMessage(text="one two three")
    assert response.finish_reason == "stop"
    usage = response.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (100, 60, 7)
    if streamed:
        assert "".join(pieces) == "one two three"
        assert len(pieces) > 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("calls", [[ONE], [ONE, TWO]], ids=["one", "parallel"])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_calls(open_adapter, name, calls, streamed) -> None:
    """One call or several come back by the tools' own names, beside text, in order."""
    with ProviderServer([Reply(text="I will ask.", tool_calls=calls)]) as server:
        async with open_adapter(name, server) as model:
            response, _ = await answer(model, ASKED, streamed=streamed)
    expected = [(call.call_id, "math.square", dict(call.arguments)) for call in calls]
    assert arguments(response) == expected
    assert response.message.text == "I will ask."
    assert response.finish_reason == "tool_calls"


@pytest.mark.parametrize("name", ADAPTERS)
async def test_whole_conversation_goes_back(open_adapter, name) -> None:
    """Instructions, parallel calls and each result reach the server in its own form."""
    said = ModelRequest(
        messages=(
            SystemMessage(text="Be brief."),
            UserMessage(text="4 and 5 squared?"),
            AssistantMessage(
                text="Well.",
                tool_calls=tuple(replace(call, name=SQUARE.name) for call in (ONE, TWO)),
            ),
            ToolMessage(call_id="c1", name=SQUARE.name, text="16 (first)"),
            ToolMessage(call_id="c2", name=SQUARE.name, text="25 (second)"),
        ),
        tools=(SQUARE,),
        settings=ModelSettings(temperature=0.5, max_tokens=50),
    )
    with ProviderServer(["16 and 25."]) as server:
        async with open_adapter(name, server) as model:
            await model.complete(said)
        body = str(server.requests[0].body)
    order = ["Be brief.", "4 and 5 squared?", "Well.", "16 (first)", "25 (second)"]
    if "anthropic" in name:
        order = order[1:]
        assert "Be brief." in body
    places = [body.index(text) for text in order]
    assert places == sorted(places)
    assert "math_square" in body
    assert body.count("'c1'") == body.count("'c2'") == 2
    sent = server.requests[0].body
    assert sent["max_output_tokens" if name == "responses" else "max_tokens"] == 50
    assert sent["temperature"] == 0.5


@pytest.mark.parametrize("name", ADAPTERS)
async def test_pictures_reach_the_provider(open_adapter, name) -> None:
    """What a user sends, and what a tool returns."""

    @tool
    def photo() -> Image:
        """Take a photo."""
        return Image(data=png(b"\0\0\xff"))

    call = ToolCall(call_id="c1", name="photo", arguments={})
    with ProviderServer([Reply(tool_calls=(call,)), "Blue."]) as server:
        model = open_adapter(name, server)
        model.media = IMAGES  # this server is not OpenAI's, and litellm may not list the model
        result = await Agent(model, tools=[photo]).run(["Is this blue?", RED])
        first, second = (json.dumps(one.body) for one in server.requests)
    assert result.output == "Blue."
    assert (first.count(RED.base64), second.count(RED.base64)) == (1, 1)
    assert second.count(Image(data=png(b"\0\0\xff")).base64) == 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_structured_output(open_adapter, name, streamed) -> None:
    """With a schema, the answer is JSON text, whatever the provider makes of it."""
    request = replace(ASKED, output_schema=SCHEMA)
    with ProviderServer([Reply(output={"n": 16})]) as server:
        async with open_adapter(name, server) as model:
            response, _ = await answer(model, request, streamed=streamed)
    assert response.message.text.replace(" ", "") == '{"n":16}'
    assert response.message.tool_calls == ()
    assert response.finish_reason == "stop"


def choice_in(body: dict) -> str:
    """What a request says about calling tools, in our words."""
    choice = body.get("tool_choice", "auto")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    return {"any": "required"}.get(kind, kind)


@pytest.mark.parametrize("choice", ["auto", "none", "required"])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_tool_choice(open_adapter, name, choice) -> None:
    """Each choice is said in the provider's words; ``auto`` is what it does anyway."""
    with ProviderServer(["well"]) as server:
        async with open_adapter(name, server) as model:
            await model.complete(replace(ASKED, tool_choice=choice))
    assert choice_in(server.requests[0].body) == choice


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_retries_honour_retry_after(open_adapter, waits, name, streamed) -> None:
    """An overloaded server says how long to wait; one that is only broken is given our waits."""
    script = [
        ErrorStatus(status=429, retry_after="7"),
        ErrorStatus(status=529, retry_after="2"),
        ErrorStatus(status=500),
        "well",
    ]
    with ProviderServer(script) as server:
        async with open_adapter(name, server, attempts=4) as model:
            response, _ = await answer(model, ASKED, streamed=streamed)
        assert len(server.requests) == 4
    assert response.message.text == "well"
    assert waits == [7.0, 2.0, 2.0]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_bad_key(open_adapter, waits, name, streamed) -> None:
    """A refused key is not tried again, says where keys come from, and stays secret."""
    with ProviderServer([], api_key="another") as server:
        async with open_adapter(name, server) as model:
            with pytest.raises(ModelStatusError, match="invalid API key") as caught:
                await answer(model, ASKED, streamed=streamed)
    assert caught.value.status == 401
    assert "Check the key" in str(caught.value)
    assert KEY not in str(caught.value)
    assert waits == []


@pytest.mark.parametrize("name", ADAPTERS)
async def test_half_closed_stream(open_adapter, waits, name) -> None:
    """A stream that ends early is an error after the text that came, never a short answer."""
    with ProviderServer([HalfStream(text="a b c d e f g h i", events=6)]) as server:
        async with open_adapter(name, server) as model:
            pieces = []
            with pytest.raises(
                ModelConnectionError, match=r"before the answer was|before a finish"
            ):
                await collect(model, pieces)
    assert "".join(pieces).startswith("a b")
    assert waits == []


@pytest.mark.parametrize("name", ADAPTERS)
async def test_reset_is_tried_again(open_adapter, waits, name) -> None:
    """A reset before anything was shown is tried again; in the middle of an answer as well."""
    with ProviderServer([Reset(), Reset(after_bytes=90), "well"]) as server:
        async with open_adapter(name, server) as model:
            response, _ = await answer(model, ASKED, streamed=False)
        assert len(server.requests) == 3
    assert response.message.text == "well"
    if name != "litellm-anthropic":  # which connects again once by itself
        assert waits == [0.5, 1.0]


@pytest.mark.parametrize(("streamed", "after_bytes"), [(False, 60), (True, 0), (True, 600)])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_silence_is_a_timeout(open_adapter, name, streamed, after_bytes) -> None:
    """A server that says nothing (more) for too long is given up, before or within its answer."""
    request = replace(ASKED, settings=ModelSettings(timeout_seconds=0.3))
    with ProviderServer([Stall(after_bytes=after_bytes)]) as server:
        async with open_adapter(name, server, attempts=1) as model:
            with pytest.raises(ModelTimeoutError, match=r"nothing usable for 0\.3 s"):
                await answer(model, request, streamed=streamed)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_cancelling_is_immediate(open_adapter, waits, name, streamed) -> None:
    """A cancel ends a request under way, which is not tried again, and frees its connection."""
    with ProviderServer([Stall(after_bytes=60)]) as server:
        async with open_adapter(name, server) as model:
            asking = asyncio.create_task(answer(model, ASKED, streamed=streamed))
            while not server.requests:
                await asyncio.sleep(0.001)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            async with asyncio.timeout(5):
                while server.open_connections:
                    await asyncio.sleep(0.001)
        assert len(server.requests) == 1
    assert waits == []


@pytest.mark.parametrize("name", OWN)
async def test_refusal_is_text(open_adapter, name) -> None:
    """What a model says when it declines is the text, with a finish reason of its own."""
    with ProviderServer([Reply(refusal="I would rather not.")]) as server:
        async with open_adapter(name, server) as model:
            response = await model.complete(ASKED)
    assert response.message.text == "I would rather not."
    assert response.finish_reason == "content_filter"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"choices": 3, "content": 3, "output": 3}, "does not follow the provider"),
        ("<html>welcome</html>", "is not JSON"),
    ],
    ids=["shape", "html"],
)
@pytest.mark.parametrize("name", OWN)
async def test_answer_of_another_shape(open_adapter, name, body, told) -> None:
    """An answer off the protocol says how, and is not asked for again."""
    with ProviderServer([RawReply(body=body)]) as server:
        async with open_adapter(name, server) as model:
            with pytest.raises(ModelResponseError, match=told):
                await model.complete(ASKED)
        assert len(server.requests) == 1


@tool
def square(n: int) -> int:
    """The square of n.

    Args:
        n: A number.
    """
    return n * n


@pytest.mark.parametrize("name", [one for one in OWN if one != "anthropic"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_arguments_of_megabytes_are_not_decoded(open_adapter, name, streamed) -> None:
    """What an answer has beyond what models write is told and left out, however it is cut up."""
    long = {"n": "x" * 600_000}
    calls = [replace(ONE, arguments=long), replace(TWO, arguments=long)]
    with ProviderServer([Reply(tool_calls=calls, piece_bytes=65_536)]) as server:
        async with open_adapter(name, server) as model:
            response, _ = await answer(model, ASKED, streamed=streamed)
    first, second = response.message.tool_calls
    assert first.arguments == long
    assert second.malformed.startswith("arguments of 600,0")
    assert (second.call_id, second.name) == ("c2", "math.square")


@pytest.mark.parametrize("name", ADAPTERS)
async def test_same_call_id_twice(open_adapter, name) -> None:
    """Calls that share an id, in one answer and across answers, get results of their own."""
    same = [ToolCall(call_id="c", name="square", arguments={"n": n}) for n in (4, 5)]
    script = [Reply(tool_calls=same), Reply(tool_calls=same[:1]), "16 and 25."]
    with ProviderServer(script) as server:
        async with open_adapter(name, server) as model:
            result = await Agent(model, tools=[square]).run("4 and 5 squared?")
        last = str(server.requests[2].body)
    episode = result.episode
    assert [made.value for made in episode.results] == [16, 25, 16]
    ids = [call.call_id for call in episode.calls]
    assert len(set(ids)) == 3
    assert ids == [made.call_id for made in episode.results]
    assert all(last.count(f"'{one}'") == 2 for one in ids)  # the call and its result


@pytest.mark.parametrize("name", ADAPTERS)
async def test_key_that_a_provider_repeats(open_adapter, name) -> None:
    """A provider that quotes the key it refuses does not get it into our messages or episodes."""

    def quoting(request) -> RawReply:
        given = request.headers.get("authorization") or request.headers.get("x-api-key")
        return RawReply(status=401, body={"error": {"message": f"incorrect key {given}"}})

    with ProviderServer(quoting) as server:
        async with open_adapter(name, server) as model:
            with pytest.raises(RunError, match=r"incorrect key .*\*\*\*") as caught:
                await Agent(model, tools=[square]).run("4 squared?")
    assert isinstance(caught.value.__cause__, ModelStatusError)
    assert KEY not in f"{caught.value} {caught.value.__cause__} {caught.value.__cause__.body}"
    assert KEY not in str(caught.value.episode)


@pytest.mark.parametrize("key", [None, "sk-test\n", "sk-tést-secret"])
@pytest.mark.parametrize("name", OWN)
async def test_key_that_can_not_be_sent(open_adapter, name, key) -> None:
    """An absent or damaged key is named by its variable before anything is sent, and not shown."""
    with ProviderServer([], api_key="another") as server:
        with pytest.raises((UsageError, RunError), match=r"(OPENAI|ANTHROPIC)_API_KEY") as caught:
            async with open_adapter(name, server, key=key) as model:
                await Agent(model).run("4 squared?")
        assert len(server.requests) == (1 if key is None and name != "anthropic" else 0)
    assert key is None or key.strip() not in str(caught.value)
    assert isinstance(caught.value, UsageError) or caught.value.episode.stop_reason == "error"


@quiet
@pytest.mark.parametrize("name", ["litellm", "litellm-anthropic"])
async def test_litellm_without_a_key(open_adapter, waits, name) -> None:
    """Its own words for an absent key count as those for a refused one: not tried again."""
    with ProviderServer(["never"]) as server:
        async with open_adapter(name, server, key=None) as model:
            with pytest.raises(RunError, match="Check the key") as caught:
                await Agent(model).run("4 squared?")
        assert server.requests == []
    assert caught.value.__cause__.status == 401
    assert waits == []


@quiet
@pytest.mark.parametrize("streamed", [False, True])
async def test_litellm_prices_cached_tokens(open_adapter, streamed) -> None:
    """The cost is that of litellm's list, cached tokens at their own price."""
    prices = []
    with ProviderServer([Reply(text="a", usage=USAGE), Reply(text="a")]) as server:
        async with open_adapter("litellm", server) as model:
            for _ in range(2):
                response, _ = await answer(model, ASKED, streamed=streamed)
                prices.append(response.usage.cost_usd)
    per_token = {"prompt": 0.15e-6, "cached": 0.075e-6, "completion": 0.6e-6}
    cached = 40 * per_token["prompt"] + 60 * per_token["cached"] + 7 * per_token["completion"]
    assert prices == pytest.approx([cached, 12 * per_token["prompt"] + 5 * per_token["completion"]])


@quiet
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["litellm", "litellm-anthropic"])
async def test_litellm_has_no_price_for_unknown_models(open_adapter, name, streamed) -> None:
    """What is not in its list has no cost, which is not the same as being free."""
    with ProviderServer(["well"]) as server:
        async with open_adapter(name, server, "model-of-tomorrow") as model:
            response, _ = await answer(model, ASKED, streamed=streamed)
    assert response.usage.cost_usd is None
