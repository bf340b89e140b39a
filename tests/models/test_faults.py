"""What goes wrong between us and a model server, what is tried again and how errors are translated."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given, strategies as st
from support.model_server import FaultyServer
from support.server_steps import ErrorStatus, RawReply, RawStream

from agentkit.errors import (
    ModelConnectionError,
    ModelError,
    ModelResponseError,
    ModelStatusError,
    ModelTimeoutError,
)
from agentkit.messages import AssistantMessage
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse, ModelSettings, TextDelta
from agentkit.models.http_model import RemoteModel
from agentkit.models.litellm import translated_sdk_error
from agentkit.models.openai_compatible import OpenAICompatibleModel
from agentkit.models.retries import RetryPolicy
from agentkit.models.status import Endpoint, retry_after_seconds, status_error
from agentkit.models.wire import EventParser, read_body

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"


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


async def test_events_that_come_together_leave_turns_to_others(open_model, question) -> None:
    """A flood of a hostile server is no longer turn of the loop than some fifty events."""
    event = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    turns, most = [0], 0

    async def others() -> None:
        while True:
            await asyncio.sleep(0)
            turns[0] += 1

    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    with FaultyServer([RawStream(pieces=[event * 5_000 + end])]) as server:
        async with open_model(server) as model:
            beating = asyncio.ensure_future(others())
            since, before = 0, -1
            async for _ in model.stream(question):
                since = since + 1 if turns[0] == before else 0
                most, before = max(most, since), turns[0]
            beating.cancel()
    assert most < 100


def flooding(listening: socket.socket) -> None:
    """Answer one request after forty thousand lines that announce an answer."""
    connection, _ = listening.accept()
    with connection:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000)
        answer = json.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]})
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(answer)}\r\n\r\n"
        connection.sendall((head + answer).encode())


async def test_announcements_without_end_leave_turns_to_others(question) -> None:
    """No turn of the loop takes a tenth of the time that reading them takes."""
    pytest.importorskip("aiohttp")  # httpx is paced for its other users as well
    longest = 0.0

    async def others() -> None:
        nonlocal longest
        while True:
            begun = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - begun)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=flooding, args=(listening,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        model = OpenAICompatibleModel("m", base_url=url, transport="aiohttp")
        beating, begun = asyncio.ensure_future(others()), time.thread_time()
        assert (await model.complete(question)).message.text == "x"
        taken = time.thread_time() - begun
        beating.cancel()
        await model.close()
    assert longest < taken / 10


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_compressed_answer_is_refused(open_model, question, kind) -> None:
    """Forty kilobytes of it hold the event loop for seconds; it was asked for as it is."""
    packed = RawReply(body="{}", headers={"Content-Encoding": "gzip"}, content_type=kind)
    with FaultyServer([packed]) as server:
        async with open_model(server) as model:
            with pytest.raises(
                ModelResponseError, match=r"is compressed \(gzip\), and was not asked"
            ):
                await ask(model, question, streamed=kind != "application/json")
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "body",
    [
        '{"a":' * 300 + "1" + "}" * 300,
        "[" * 100_000,
        "[" + "[]," * 600_000 + "[]]",
        '{"choices": [' + '{"message": {"content": "x"}},' * 50_000 + "{}]}",
    ],
    ids=["deep", "no end", "wide", "wide, and of the size that answers may have"],
)
async def test_an_answer_without_end_is_refused(open_model, question, body) -> None:
    """Few bytes that stand for many levels or values are an answer that cannot be used."""
    with FaultyServer([RawReply(body=body)] * 4) as server:
        async with open_model(server) as model:
            with pytest.raises(ModelResponseError, match=r"nested too deeply|values"):
                await ask(model, question, streamed=False)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        f"<p>{KEY}</p>",
        f"<p>{'x' * 180}{KEY}</p>",
        json.dumps([KEY]),
        json.dumps({"choices": [{"message": {"content": "x"}, "token_ids": [KEY]}]}),
        json.dumps(
            {
                "choices": [
                    {
                        "message": {"content": "x"},
                        "token_ids": [1],
                        "logprobs": {"content": [{"logprob": KEY}]},
                    }
                ]
            }
        ),
    ],
    ids=["no JSON", "cut within the key", "no object", "a token", "a probability"],
)
async def test_no_message_quotes_the_key(open_model, question, body, streamed) -> None:
    """A server that repeats what it was sent is quoted without our key."""
    with FaultyServer([RawReply(body=body)] * 4) as server:
        async with open_model(server, api_key=KEY) as model:
            with pytest.raises(ModelResponseError) as caught:
                await ask(model, question, streamed=streamed)
    assert KEY[:8] not in "".join(traceback.format_exception(caught.value))


async def test_a_body_without_end_is_not_read_to_its_end() -> None:
    """An answer, an event and a stream end where no honest one is as long."""
    piece, read = b"x" * 1_000_000, 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield piece

    with pytest.raises(ModelResponseError, match="more than 16,777,216 bytes"):
        await read_body(pieces())
    assert read == 17
    with pytest.raises(ModelResponseError, match="more than 16,777,216 bytes"):
        EventParser().feed(b"data: " + piece * 17 + b"\n\n")
    for start in (b"", b"data: 1\n\n", b"data: 1\n"):
        parser = EventParser()
        parser.feed(start)
        for _ in range(134):
            parser.feed(piece)
        with pytest.raises(ModelResponseError, match="more than 134,217,728 bytes"):
            parser.feed(piece)


ENDPOINT = Endpoint(place="http://x", model="m", key_source="the variable X", api_key="sk-secret")
ANSWER = ModelResponse(message=AssistantMessage(text="well"))


class Provider(RemoteModel):
    """Plays a script: an exception is raised, ``None`` hangs, anything else is streamed."""

    def __init__(self, *script: object, **options: object) -> None:
        retry = RetryPolicy(sleep=no_wait)
        super().__init__("m", provider_name="provider", retry=retry, **options)
        self.script = list(script)

    async def close(self) -> None:
        """Nothing to close."""

    async def _answer(self, request, idle):
        return [event async for event in self._events(request, idle)][-1]

    async def _events(self, request, idle):
        while True:
            step = self.script.pop(0)
            if step is None:
                await idle.wait(asyncio.sleep(60))
            if isinstance(step, Exception):
                raise step
            yield step
            if isinstance(step, ModelResponse):
                return


async def no_wait(seconds: float) -> None:
    """Return at once."""


async def test_failures_that_can_pass_are_retried(question) -> None:
    """A lost connection is tried again; a bug is not dressed up as a model's failure."""
    lost = ModelConnectionError("reset")
    async with Provider(lost, lost, ANSWER) as model:
        assert await model.complete(question) == ANSWER
        assert model.name == "m"
    with pytest.raises(ZeroDivisionError):
        await Provider(ZeroDivisionError()).complete(question)


@pytest.mark.parametrize(("own", "asked"), [(0.05, None), (60.0, 0.05)])
async def test_deadline(question, own, asked) -> None:
    """The wait ends with the model's deadline, or with that of the request."""
    request = replace(question, settings=ModelSettings(timeout_seconds=asked))
    model = Provider(None, None, ANSWER, timeout_seconds=own)
    assert await model.complete(request) == ANSWER
    model = Provider(None, None, None, timeout_seconds=own)
    with pytest.raises(ModelTimeoutError, match=r"Provider\('m'\) sent nothing usable for 0\.05 s"):
        await model.complete(request)


async def test_streams_start_again_only_before_they_show_anything(question) -> None:
    """A failure after the first piece is raised, one before is retried."""
    events: list = []
    piece = TextDelta(text="we")
    await collect(Provider(ModelConnectionError("cut"), piece, ANSWER), question, events)
    assert events == [piece, ANSWER]
    events.clear()
    with pytest.raises(ModelConnectionError, match="cut"):
        await collect(Provider(piece, ModelConnectionError("cut"), ANSWER), question, events)
    assert events == [piece]


@pytest.fixture
def sdk() -> ModuleType:
    """A module with the error classes that the SDKs have in common."""
    module = ModuleType("sdk")

    class APIError(Exception):
        body: object = None

    module.APIError = APIError
    for name, base in (
        ("APIConnectionError", APIError),
        ("APIStatusError", APIError),
        ("APIResponseValidationError", APIError),
    ):
        setattr(module, name, type(name, (base,), {}))
    module.APITimeoutError = type("APITimeoutError", (module.APIConnectionError,), {})
    return module


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("APITimeoutError", ModelTimeoutError),
        ("APIConnectionError", ModelConnectionError),
        ("APIResponseValidationError", ModelResponseError),
        ("APIStatusError", ModelStatusError),
        ("APIError", ModelStatusError),
    ],
)
def test_each_kind_of_error(sdk, name, expected) -> None:
    """Each kind has its counterpart."""
    assert type(translated_sdk_error(getattr(sdk, name)("oops"), sdk, ENDPOINT)) is expected


def test_status_and_body_are_kept(sdk) -> None:
    """The status, the provider's words and the advice are in the error; the key is not."""
    error = sdk.APIStatusError("oops")
    error.status_code, error.body = 401, {"message": "bad key sk-secret"}
    translated = translated_sdk_error(error, sdk, ENDPOINT)
    assert isinstance(translated, ModelStatusError)
    assert translated.status == 401
    assert "bad key ***. Check the key: the variable X" in str(translated)


def test_errors_of_the_http_library_and_of_json(sdk) -> None:
    """SDKs let both through while they read a stream."""
    import httpx

    lost = translated_sdk_error(httpx.RemoteProtocolError("cut"), sdk, ENDPOINT)
    assert isinstance(lost, ModelConnectionError)
    broken = translated_sdk_error(json.JSONDecodeError("oops", "{", 1), sdk, ENDPOINT)
    assert isinstance(broken, ModelResponseError)
    assert translated_sdk_error(ValueError("mine"), sdk, ENDPOINT) is None


NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def status(code: int) -> ModelStatusError:
    """An error status."""
    return ModelStatusError("", status=code, body="", retry_after=None)


PASSING = [status(429), status(529), ModelConnectionError(), ModelTimeoutError()]
LASTING = [status(501), status(400), status(404), ModelResponseError(), ModelError()]


def test_which_failures_are_tried_again() -> None:
    """Only failures that another attempt can mend, and only as often as allowed."""
    policy = RetryPolicy(attempts=2)
    assert all(policy.allows_another(error, 1) for error in PASSING)
    assert not any(policy.allows_another(error, 2) for error in PASSING)
    assert not any(policy.allows_another(error, 1) for error in LASTING)


@given(st.integers(1, 2000), st.floats(0, 1, exclude_max=True), st.floats(0, 1))
def test_backoff_is_bounded(failures: int, draw: float, jitter: float) -> None:
    """No wait is longer than the cap, or shorter than what jitter leaves of it."""
    policy = RetryPolicy(jitter=jitter, random=lambda: draw)
    longest = min(8.0, 0.5 * 2.0 ** min(failures - 1, 10))
    assert longest * (1 - jitter) <= policy.delay(failures) <= longest


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"RETRY-AFTER": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),
        ({"Retry-After": "7", "Retry-After-Ms": "250"}, 0.25),
        ({"Retry-After": "in a while"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "9" * 400}, 86_400.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:50 +" + "9" * 20}, None),
    ],
)
def test_retry_after(headers, seconds) -> None:
    """Seconds, milliseconds or an HTTP date, in any case; nonsense counts as nothing."""
    assert retry_after_seconds(headers, lambda: NOW) == seconds


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "slow down"}}', ": slow down."),
        (b'{"error": "slow down"}', ": slow down."),
        (b'{"message": "slow down"}', ": slow down."),
        (b'{"detail": [{"msg": "x"}]}', ': [{"msg": "x"}].'),
        (b'[{"error": {"message": "slow down"}}]', ": slow down."),
        (b"<html>slow down</html>", ": '<html>slow down</html>'."),
        (b"", " for model 'm'. "),
        (b"\xff", "�"),
    ],
)
def test_the_servers_own_words(body, said) -> None:
    """Wherever a server puts its message, it is in ours."""
    endpoint = Endpoint(place="http://x", model="m", key_source="")
    error = status_error(endpoint, status=429, headers={}, body=body)
    assert said in str(error)
    assert str(error).startswith("http://x answered 429 for model 'm'")
