"""What one server takes on, and what it says beyond that."""

import asyncio
import socket

import httpx
import pytest

from agentkit.errors import UsageError
from agentkit.server import Keys, ServerLimits
from agentkit.server.limits import RateLimiter, Slots

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


async def test_too_many_runs_at_once(make_app, talk, body, store):
    """Beyond the bound the answer is 503 with Retry-After, and no run begins."""
    app = make_app(limits=ServerLimits(max_concurrent=2))
    async with talk(app) as client:
        slow = [
            asyncio.create_task(client.post(URL, json=body('call nap {"seconds": 0.3}')))
            for _ in range(2)
        ]
        while len(app.state.runs) < 2:
            await asyncio.sleep(0.01)
        shed = await client.post(URL, json=body("Hi"))
        answers = await asyncio.gather(*slow)
        later = await client.post(URL, json=body("Hi"))
    assert shed.status_code == 503
    assert shed.headers["retry-after"] == "1"
    assert shed.json()["error"]["code"] == "overloaded"
    assert [answer.status_code for answer in (*answers, later)] == [200, 200, 200]
    assert len(list(store.select())) == 3


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


def test_who_has_to_wait_hears_how_long_it_may_take():
    """As long as the oldest place is held already, and no longer than it can be held."""
    now = [0.0]
    slots = Slots(most=2, each=lambda: 1, seconds=100, clock=lambda: now[0])
    slots.take("ann")
    waits = []
    for now[0] in (0.5, 12.0, 95.0):
        assert slots.take("ann") is None
        waits.append(slots.refusal("ann").retry_after)
    assert waits == [1, 12, 5]
    assert slots.refusal("ann").status == 429
    bobs = slots.take("bob")
    assert slots.refusal("eve").status == 503
    slots.free("bob", bobs)
    assert slots.take("eve") is not None


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


def test_the_share_of_a_key_follows_keys_that_come_later(tmp_path):
    """A key file that gets a second key while the server runs leaves places for both."""
    now = [0.0]
    file = tmp_path / "keys"
    file.write_text(f"ann={'a' * 20}\n")
    keys = Keys.from_file(file, clock=lambda: now[0])
    limits = ServerLimits(max_concurrent=8)
    assert limits.share(keys) == limits.share(None) == 8
    file.write_text(f"ann={'a' * 20}\nbob={'b' * 20}\n")
    now[0] = 2.0
    keys.holder("a" * 20)
    assert limits.share(keys) == 2
    assert ServerLimits(max_concurrent=8, max_concurrent_per_key=5).share(keys) == 5
