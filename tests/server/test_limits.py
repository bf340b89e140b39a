"""What one server takes on, and what it says beyond that."""

import asyncio
import json
import socket

import httpx
import pytest

from agentkit.errors import UsageError
from agentkit.models.base import TextDelta
from agentkit.server import ServerLimits
from agentkit.server.limits import RateLimiter
from agentkit.testing import FunctionModel

URL = "/v1/chat/completions"
KEY, OTHER_KEY = "sk-0123456789abcdef", "sk-fedcba9876543210"


@pytest.mark.parametrize("length", ["declared", "chunked"])
async def test_a_large_body_is_refused(make_app, served, body, store, length, no_tls):
    """The answer is readable for a client that was still sending; the next request works."""
    content = b'{"x": "' + b"x" * 3_000_000 + b'"}'

    async def pieces():
        for at in range(0, len(content), 65536):
            yield content[at : at + 65536]

    headers = {"content-type": "application/json"}
    with served(make_app(limits=ServerLimits(max_body_bytes=1000))) as url:
        async with httpx.AsyncClient(verify=no_tls, base_url=url) as client:
            sent = content if length == "declared" else pieces()
            answer = await client.post(URL, content=sent, headers=headers)
            again = await client.post(URL, json=body("Hi"))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "body_too_large"
    assert again.status_code == 200
    assert len(list(store.select())) == 1


def test_a_body_that_does_not_come_is_not_waited_for(make_app, served, store):
    """A client that sends half a body is told so, and its connection ends."""
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
        b"Content-Type: application/json\r\n\r\n{"
    )
    with served(make_app(limits=ServerLimits(body_seconds=0.1))) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(head)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"body_timeout" in answer


async def test_half_sent_bodies_take_places_of_nobody_else(make_app, talk, body, keys):
    """A key whose bodies do not arrive is refused itself; another key is answered."""
    app = make_app(keys=keys, limits=ServerLimits(max_concurrent=4))
    end = asyncio.Event()

    async def half():
        yield b"{"
        await end.wait()
        yield b"}"

    headers = {"content-type": "application/json"}
    async with talk(app, KEY) as greedy, talk(app, OTHER_KEY) as modest:
        sent = [
            asyncio.create_task(greedy.post(URL, content=half(), headers=headers))
            for _ in range(20)
        ]
        while sum(one.done() for one in sent) < 16:
            await asyncio.sleep(0.01)
        answers = [await modest.post(URL, json=body("Hi")) for _ in range(3)]
        end.set()
        refused = [one for one in await asyncio.gather(*sent) if one.status_code == 429]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len(refused) == 16
    assert refused[0].json()["error"]["code"] == "too_many_at_once"
    assert int(refused[0].headers["retry-after"]) >= 1


@pytest.mark.parametrize("has_keys", [True, False])
async def test_one_client_leaves_places_for_the_others(make_app, talk, body, keys, has_keys):
    """A key has a quarter of the places, and an address as many as is said; then it gets 429."""
    limits = ServerLimits(max_concurrent=4, max_concurrent_per_key=None if has_keys else 1)
    app = make_app(keys=keys if has_keys else None, limits=limits)
    nap = body('call nap {"seconds": 30}')
    async with talk(app, KEY) as greedy, talk(app, OTHER_KEY, "10.0.0.9") as modest:
        slow = asyncio.create_task(greedy.post(URL, json=nap))
        while not len(app.state.runs):
            await asyncio.sleep(0.01)
        refused = await greedy.post(URL, json=body("Hi"))
        answer = await modest.post(URL, json=body("Hi"))
        slow.cancel()
        await asyncio.wait({slow})
        later = await greedy.post(URL, json=body("Hi"))
    assert (refused.status_code, answer.status_code, later.status_code) == (429, 200, 200)
    assert refused.headers["retry-after"] == "1"


async def test_a_full_server_says_so(make_app, talk, body):
    """With every place taken the answer is 503, and a place is free again afterwards."""
    app = make_app(limits=ServerLimits(max_concurrent=1, max_concurrent_per_key=2))
    async with talk(app) as client:
        slow = asyncio.create_task(client.post(URL, json=body('call nap {"seconds": 30}')))
        while not len(app.state.runs):
            await asyncio.sleep(0.01)
        full = await client.post(URL, json=body("Hi"))
        slow.cancel()
        await asyncio.wait({slow})
        later = await client.post(URL, json=body("Hi"))
    assert (full.status_code, full.json()["error"]["code"]) == (503, "overloaded")
    assert (full.headers["retry-after"], later.status_code) == ("1", 200)


async def test_each_key_has_its_own_rate(make_app, talk, body, keys):
    """Beyond it the answer is 429 with Retry-After; another key is not concerned."""
    app = make_app(keys=keys, limits=ServerLimits(requests_per_minute=12))
    async with talk(app, "sk-0123456789abcdef") as client:
        answers = [await client.post(URL, json=body("Hi")) for _ in range(3)]
    async with talk(app, "sk-fedcba9876543210") as client:
        other = await client.post(URL, json=body("Hi"))
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 1 <= int(answers[2].headers["retry-after"]) <= 5
    assert answers[2].json()["error"]["type"] == "rate_limit_error"
    assert other.status_code == 200


def test_a_bucket_fills_with_time():
    """A key that waits as long as it was told may go on, and not a moment before."""
    now = [100.0]
    limiter = RateLimiter(60, clock=lambda: now[0])
    assert [limiter.wait("a") for _ in range(12)] == [0] * 10 + [1, 1]
    now[0] += 0.9
    assert limiter.wait("a") == 1
    now[0] += 0.1
    assert [limiter.wait("a"), limiter.wait("a")] == [0, 1]
    now[0] += 3600
    assert [limiter.wait("a") for _ in range(11)] == [0] * 10 + [1]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_that_takes_too_long_is_cut(make_app, talk, body, store, stream):
    """The client gets 504 and is told not to repeat it; the episode is kept as cancelled."""
    app = make_app(limits=ServerLimits(request_seconds=0.1))
    async with talk(app) as client:
        answer = await client.post(URL, json=body('call nap {"seconds": 30}', stream=stream))
    error = answer.json()["error"]
    assert answer.status_code == 504
    assert answer.headers["x-should-retry"] == "false"
    (episode,) = store.select()
    assert (episode.stop_reason, episode.episode_id) == ("cancelled", error["episode_id"])
    assert [call.name for call in episode.calls] == ["nap"]


def test_limits_are_checked():
    """A bound of zero is a mistake, but for the time to drain."""
    assert ServerLimits(drain_seconds=0).drain_seconds == 0
    for name in ("max_body_bytes", "max_concurrent", "request_seconds", "requests_per_minute"):
        with pytest.raises(UsageError, match=name):
            ServerLimits(**{name: 0})


URL = "/v1/chat/completions"
LIMITS = ServerLimits(max_concurrent=1, send_seconds=0.2)


class Endless(FunctionModel):
    """Says the same for ever when it is streamed."""

    async def stream(self, request):
        while True:
            yield TextDelta(text="and " * 5000)
            await asyncio.sleep(0.001)


def unread(url, body, *, times=1):
    """A connection that sends requests back to back and reads no answer."""
    content = json.dumps(body).encode()
    head = (
        f"POST {URL} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", int(url.rpartition(":")[2])))
    connection.sendall((head.encode() + content) * times)
    return connection


async def begun(app):
    """Wait until a run holds the only place."""
    while not len(app.state.runs):
        await asyncio.sleep(0.01)


async def next_answer(app, url, body, no_tls):
    """What another client gets when the place is free again."""
    while len(app.state.runs):
        await asyncio.sleep(0.01)
    async with httpx.AsyncClient(verify=no_tls, base_url=url) as client:
        return await client.post(URL, json=body("Hi"))


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such bound")
async def test_a_stream_that_nobody_reads_ends(make_app, served_alone, body, store, no_tls):
    """The client counts as gone: its run is cancelled and kept, its place is free."""
    app = make_app(Endless(lambda _: "Hi"), limits=LIMITS)
    with served_alone(app) as url, unread(url, body("talk", stream=True)):
        await begun(app)
        answer = await next_answer(app, url, body, no_tls)
    assert answer.status_code == 200
    assert sorted(episode.stop_reason for episode in store.select()) == ["cancelled", "finished"]


async def test_whole_answers_that_nobody_reads(make_app, served, body, store, no_tls, caplog):
    """Requests sent back to back by a client that reads no answer free their place as well."""
    app = make_app(lambda _: "x" * 1_000_000, limits=LIMITS)
    with served(app) as url, unread(url, body("Hi"), times=20):
        await begun(app)
        while "the client does not read" not in caplog.text:
            await asyncio.sleep(0.01)
        answer = await next_answer(app, url, body, no_tls)
    assert answer.status_code == 200
    assert {episode.stop_reason for episode in store.select()} == {"finished"}
