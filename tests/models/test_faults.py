"""What goes wrong between us and a model server, over each transport."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from support.model_server import FaultyServer
from support.server_steps import (
    ErrorStatus,
    HalfStream,
    RawReply,
    RawStream,
)

from agentkit.errors import (
    ModelConnectionError,
    ModelResponseError,
    ModelStatusError,
)
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.openai_compatible import OpenAICompatibleModel
from agentkit.models.retries import RetryPolicy
from agentkit.models.wire import EventParser, read_body


async def ask(model: OpenAICompatibleModel, request: ModelRequest, *, streamed: bool) -> str:
    """The text of one answer, streamed or not."""
    if not streamed:
        return (await model.complete(request)).message.text
    response = [event async for event in model.stream(request)][-1]
    assert isinstance(response, ModelResponse)
    return response.message.text


async def collect(
    model: OpenAICompatibleModel, request: ModelRequest, into: list[ModelEvent]
) -> None:
    """Add the events of a stream to ``into``, as far as it goes."""
    async for event in model.stream(request):
        into.append(event)  # noqa: PERF401 - an extend would keep nothing when the stream fails


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("status", [429, 503])
async def test_transient_status_is_retried(open_model, question, waits, status, streamed) -> None:
    """A status that says "not now" is tried again, with waits that double."""
    fault = ErrorStatus(status=status)
    with FaultyServer([fault, fault, "well"]) as server:
        async with open_model(server) as model:
            assert await ask(model, question, streamed=streamed) == "well"
    assert waits == [0.5, 1.0]


async def test_last_failure_is_raised_when_attempts_are_spent(open_model, question, waits) -> None:
    """After the last attempt the error says how often it was tried."""
    with FaultyServer([ErrorStatus(status=500)] * 3) as server:
        async with open_model(server) as model:
            with pytest.raises(ModelStatusError) as caught:
                await model.complete(question)
    assert len(waits) == 2
    assert caught.value.__notes__ == ["gave up after 3 attempts"]


async def test_nobody_listens(open_model, question, waits) -> None:
    """A server that is not there is tried as often as any other failure."""
    with FaultyServer([]) as server:
        model = open_model(server)
    with pytest.raises(
        ModelConnectionError, match=r"could not connect to .* Is the server running"
    ):
        await model.complete(question)
    assert len(waits) == 2


async def test_server_that_does_not_speak_tls(question, transport) -> None:
    """An https URL of a plain server is a connection error, found out before anything is sent."""
    with FaultyServer([]) as server:
        url = server.base_url.replace("http:", "https:")
        no_retry = RetryPolicy(attempts=1)
        async with OpenAICompatibleModel(
            "m", base_url=url, transport=transport, retry=no_retry
        ) as model:
            with pytest.raises(ModelConnectionError, match="could not connect to https:"):
                await model.complete(question)
        assert server.requests == []


async def test_proxy_of_the_environment(question, transport, monkeypatch) -> None:
    """HTTP_PROXY is used and NO_PROXY exempts, over either transport."""
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with FaultyServer(["through the proxy"]) as proxy, FaultyServer(["direct"]) as server:
        monkeypatch.setenv("http_proxy", proxy.base_url.removesuffix("/v1"))
        url = server.base_url.replace("127.0.0.1", "localhost")
        texts = []
        for exempt in ("", "localhost"):
            monkeypatch.setenv("no_proxy", exempt)
            async with OpenAICompatibleModel("m", base_url=url, transport=transport) as model:
                texts.append((await model.complete(question)).message.text)
        assert texts == ["through the proxy", "direct"]
        assert proxy.requests[0].path.startswith("http://localhost:")


async def test_stream_that_ends_before_any_text_is_retried(open_model, question, waits) -> None:
    """As long as nothing was shown, a stream may start again."""
    with FaultyServer([HalfStream(events=1), "well"]) as server:
        async with open_model(server) as model:
            assert await ask(model, question, streamed=True) == "well"
    assert len(waits) == 1


async def test_error_in_the_middle_of_a_stream(open_model, question) -> None:
    """An error object among the events is an error status with the provider's words."""
    events: list[ModelEvent] = []
    pieces = [
        b'data: {"choices":[{"delta":{"content":"Well"}}]}\n\n',
        b'data: {"error":{"message":"engine overloaded","code":503}}\n\n',
    ]
    with FaultyServer([RawStream(pieces=pieces)]) as server:
        async with open_model(server) as model:
            with pytest.raises(ModelStatusError, match="engine overloaded") as caught:
                await collect(model, question, events)
    assert caught.value.status == 503
    assert events == [TextDelta(text="Well")]


async def test_error_object_with_status_200(open_model, question, waits) -> None:
    """Gateways answer 200 with an error inside; its code counts."""
    fault = RawReply(body={"error": {"message": "upstream busy", "code": 429}})
    with FaultyServer([fault, "well"]) as server:
        async with open_model(server) as model:
            assert await ask(model, question, streamed=False) == "well"
    assert len(waits) == 1


async def test_redirect_is_not_followed(open_model, question) -> None:
    """A redirect could carry the key elsewhere; the message says where it points."""
    fault = RawReply(status=307, headers={"Location": "http://elsewhere/v1"})
    with FaultyServer([fault]) as server:
        async with open_model(server) as model:
            with pytest.raises(ModelStatusError, match="redirects to http://elsewhere/v1"):
                await model.complete(question)


async def test_stream_that_is_abandoned_frees_the_connection(open_model, question) -> None:
    """Leaving a stream early closes it, and the model goes on with a new connection."""
    with FaultyServer(["one two three", "well"]) as server:
        async with open_model(server) as model:
            stream = model.stream(question)
            assert await anext(stream) == TextDelta(text="one ")
            await stream.aclose()
            assert await ask(model, question, streamed=False) == "well"
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "body",
    ['{"a":' * 300 + "1" + "}" * 300, "[" * 100_000, "[" + "[]," * 600_000 + "[]]"],
    ids=["deep", "no end", "wide"],
)
async def test_an_answer_without_end_is_refused(open_model, question, body) -> None:
    """Few bytes that stand for many levels or values are an answer that cannot be used."""
    with FaultyServer([RawReply(body=body)] * 4) as server:
        async with open_model(server) as model:
            with pytest.raises(ModelResponseError, match=r"nested too deeply|values"):
                await ask(model, question, streamed=False)


async def test_a_body_without_end_is_not_read_to_its_end() -> None:
    """An answer, an event and a stream end where no honest one is as long."""
    piece, read = b"x" * 1_000_000, 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield piece

    with pytest.raises(ModelResponseError, match="more than 134,217,728 bytes"):
        await read_body(pieces())
    assert read == 135
    for start in (b"", b"data: 1\n\n", b"data: 1\n"):
        parser = EventParser()
        parser.feed(start)
        for _ in range(134):
            parser.feed(piece)
        with pytest.raises(ModelResponseError, match="more than 134,217,728 bytes"):
            parser.feed(piece)
