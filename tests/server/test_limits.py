"""Who gets in, what one server takes on, and what it counts."""

import asyncio
import json
import logging
import socket
from contextlib import suppress

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from support.app_stage import NO_BODIES, begun, ended, raw_answer

from agentkit.errors import UsageError
from agentkit.models.base import TextDelta
from agentkit.server import Keys, ServerLimits
from agentkit.server.metrics import Metrics
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


@pytest.mark.parametrize("server", ["ours", "another"])
@pytest.mark.parametrize(("header", "sent", "begin"), NO_BODIES)
def test_a_chunk_that_is_none_costs_a_line(
    make_app, served, served_alone, keys, caplog, server, header, sent, begin
):
    """A stranger who sends what is no HTTP is told so, and fills no log with tracebacks."""
    with (served_alone if server == "ours" else served)(make_app(keys=keys)) as url:
        answer = raw_answer(url, "/v1/chat/completions", sent, header)
    assert answer.startswith(begin)
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.exc_info]


HEAD = (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    "Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    "Transfer-Encoding: chunked\r\n\r\n"
)


def test_a_body_of_two_lengths_is_refused(make_app, served_alone, keys):
    """A proxy in front may believe the other one, and take the rest for a request of its own."""
    head = HEAD.format(key=KEY).replace("Transfer", "Content-Length: 5\r\nTransfer")
    with served_alone(make_app(keys=keys)) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(head.encode() + b"2\r\n{}\r\n0\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 400"


@pytest.mark.parametrize(("piece", "answer"), [(1, b"HTTP/1.1 400"), (100, b"HTTP/1.1 200")])
def test_a_body_in_pieces_of_a_byte_is_refused(make_app, served_alone, keys, piece, answer):
    """Each piece takes its time on the event loop, so that they are counted."""
    body = b'{"model": "agent", "messages": [{"role": "user", "content": "%s"}]}' % (b"a" * 100_000)
    pieces = (body[at : at + piece] for at in range(0, len(body), piece))
    sent = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"
    found = answer
    with served_alone(make_app(keys=keys)) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(HEAD.format(key=KEY).encode())
            try:
                connection.sendall(sent)
                found = connection.recv(12)
            except ConnectionError:  # it ended with much unread, and what was answered is lost
                assert piece == 1
    assert found == answer


def test_a_stranger_who_goes_on_in_pieces_of_a_byte_is_cut_off(
    make_app, served_alone, keys, caplog
):
    """Who was refused already is read no further, and fills no log with tracebacks."""
    with served_alone(make_app(keys=keys)) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(HEAD.format(key="sk-none").encode())
            assert connection.recv(12) == b"HTTP/1.1 401"
            sent = 0
            with suppress(ConnectionError):
                while sent < 1_000_000:
                    sent += 1_000
                    connection.sendall(b"1\r\na\r\n" * 1_000)
    assert sent < 1_000_000
    assert "Traceback" not in caplog.text


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
        await begun(app)
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
        await begun(app)
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


async def next_answer(app, url, body, no_tls):
    """What another client gets when the place is free again."""
    await ended(app)
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


@pytest.mark.parametrize(
    "header", [None, KEY, f"Basic {KEY}", "Bearer sk-wrong-wrong-wrong", f"Bearer{KEY}"]
)
@pytest.mark.parametrize("path", [URL, "/metrics", "/nowhere"])
async def test_without_a_good_key_nothing_is_shown(make_app, talk, keys, header, path):
    """Every path but the probes asks for a key, those that do not exist included."""
    headers = {} if header is None else {"authorization": header}
    async with talk(make_app(keys=keys)) as client:
        answer = await client.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "invalid_api_key"


async def test_paths_are_those_below_the_mount(make_app, talk, keys, body):
    """In another application its probes are open, its other paths are not, and it counts them."""
    app = Starlette(routes=[Mount("/shop", make_app(keys=keys))])
    async with talk(app) as client:
        assert (await client.get("/shop/healthz")).status_code == 200
        assert (await client.get("/shop/metrics")).status_code == 401
        assert (await client.get("/shop/v1/models")).status_code == 401
    async with talk(app, KEY) as client:
        assert (await client.post(f"/shop{URL}", json=body("Hi"))).status_code == 200
        metrics = (await client.get("/shop/metrics")).text
    assert f'agentkit_requests_total{{route="{URL}",status="200",key="shop"}} 1' in metrics


@pytest.mark.parametrize("wrong", ["Bearer sk-wrong-wrong-wrong", "Basic eDp5", ""])
@pytest.mark.parametrize("good_first", [True, False])
async def test_two_authorizations_are_none(make_app, talk, keys, body, store, wrong, good_first):
    """Whoever stands in front of the server may have looked at the other one."""
    headers = [("authorization", f"Bearer {KEY}"), ("authorization", wrong)]
    async with talk(make_app(keys=keys)) as client:
        answer = await client.post(
            URL, json=body("Hi"), headers=headers if good_first else headers[::-1]
        )
    assert answer.status_code == 401
    assert list(store.select()) == []


async def test_keys_are_in_no_log(make_app, talk, keys, body, caplog):
    """At the most talkative level, neither a good nor a wrong key is written."""
    with caplog.at_level(logging.DEBUG):
        for key in (KEY, "sk-wrong-wrong-wrong"):
            async with talk(make_app(keys=keys), key) as client:
                await client.post(URL, json=body("Hi"))
    assert "key=shop" in caplog.text
    assert KEY not in caplog.text
    assert "sk-wrong" not in caplog.text


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "[::2]:80"])
async def test_a_server_without_keys_answers_to_local_names_only(make_app, talk, host):
    """A web page can lead its own name to this machine; it does not get in."""
    async with talk(make_app()) as client:
        answer = await client.get("/v1/models", headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_body_must_say_that_it_is_json(make_app, talk, store, kind):
    """The kinds that a web page may send without asking are refused."""
    async with talk(make_app()) as client:
        answer = await client.post(URL, content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 415


A, B = "sk-aaaaaaaaaaaaaaaa", "sk-bbbbbbbbbbbbbbbb"


def test_each_key_has_its_name():
    """Several keys are good at a time; anything else is nobody's."""
    keys = Keys({"old": A, "new": B})
    assert (keys.holder(A), keys.holder(B)) == ("old", "new")
    for wrong in ("", "sk-", A[:-1], A + "x", A.upper(), "ключ", "\udcff", "x" * 100_000):
        assert keys.holder(wrong) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"shop={A},desk={B}", ("shop", "desk")),
        (f" shop={A}\n desk={B} ", ("shop", "desk")),
        (A, ("default",)),
        ("c2VjcmV0c2VjcmV0c2VjcmV0==", ("default",)),
        ("me=c2VjcmV0c2VjcmV0c2VjcmV0==", ("me",)),
    ],
)
def test_keys_come_from_a_variable(monkeypatch, text, names):
    """Pairs between commas or blanks; one key may stand alone."""
    monkeypatch.setenv("SERVER_KEYS", text)
    assert Keys.from_environment("SERVER_KEYS").names == names


@pytest.mark.parametrize(
    "text",
    ["", ",", "short", "shop=short", f"a b={A}", f"a={A},a={B}", f"ü={A}", "a=ключключключключ"],
)
def test_unusable_keys_are_refused_without_showing_them(monkeypatch, text):
    """The message names the place and not the key."""
    monkeypatch.setenv("SERVER_KEYS", text)
    with pytest.raises(UsageError, match="SERVER_KEYS") as caught:
        Keys.from_environment("SERVER_KEYS")
    assert A not in str(caught.value)
    assert "short" not in str(caught.value)


def test_a_key_file_is_read_again_when_it_changes(tmp_path):
    """A key is added, then the old one is taken away, without a restart."""
    now = [0.0]
    path = tmp_path / "keys"
    path.write_text(f"# keys of the shop\nold={A}\n")
    keys = Keys.from_file(path, clock=lambda: now[0])
    assert (keys.holder(A), keys.holder(B)) == ("old", None)
    path.write_text(f"old={A}\nnew={B}  # since today\n")
    assert keys.holder(B) is None  # not looked at again yet
    now[0] = 2.0
    assert (keys.holder(A), keys.holder(B)) == ("old", "new")
    replacement = tmp_path / "keys.new"
    replacement.write_text(f"new={B}\n")
    replacement.replace(path)
    now[0] = 4.0
    assert (keys.holder(A), keys.holder(B)) == (None, "new")


def test_a_broken_key_file_changes_nothing(tmp_path, caplog):
    """While the file is absent or empty the known keys stay, and the log says so without them."""
    now = [0.0]
    path = tmp_path / "keys"
    path.write_text(f"old={A}\n")
    keys = Keys.from_file(path, clock=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for at, spoil in enumerate([lambda: path.write_text(f"{A} {A}"), path.unlink], start=1):
            spoil()
            now[0] = at * 2.0
            assert keys.holder(A) == "old"
    assert len(caplog.records) == 2
    assert A not in caplog.text


async def test_what_happened_is_counted(make_app, talk, body, keys, store):
    """Requests, tokens, tool failures by label, runs and episodes."""
    key = "sk-0123456789abcdef"
    async with talk(make_app(keys=keys), key) as client:
        await client.post(URL, json=body("Hi"))
        await client.post(URL, json=body("call broken", stream=True))
        await client.post(URL, json=body("call add {}"))
        await client.post(URL, json=body("call made_up_name_7 {}"))
        await client.post(URL, json=body("Hi", n=2))
        await client.get("/secret/path", headers={"authorization": "Bearer x"})
        answer = await client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.text.splitlines()
    assert "# TYPE agentkit_request_seconds histogram" in lines
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    expected = {
        f'requests_total{{route="{URL}",status="200",key="shop"}}': 4,
        f'requests_total{{route="{URL}",status="400",key="shop"}}': 1,
        f'request_seconds_count{{route="{URL}"}}': 5,
        f'request_seconds_bucket{{route="{URL}",le="+Inf"}}': 5,
        "first_text_seconds_count": 1,
        "runs_started_total": 4,
        "episodes_kept_total": 4,
        'runs_ended_total{outcome="finished"}': 4,
        'tokens_total{kind="prompt"}': 7 * 7,
        'tool_failures_total{tool="broken",label="tool_error"}': 1,
        'tool_failures_total{tool="add",label="invalid_arguments"}': 1,
        'tool_failures_total{tool="(unknown)",label="unknown_tool"}': 1,
        "runs_in_flight": 0,
    }
    assert {name: float(samples[f"agentkit_{name}"]) for name in expected} == expected
    assert "made_up_name_7" not in answer.text
    assert "secret" not in answer.text


def test_labels_are_escaped_and_bounds_belong_below():
    """Quotes, backslashes and line breaks of a value do not end it; buckets are less-or-equal."""
    metrics = Metrics({})
    metrics.count("agentkit_runs_ended_total", 'a"b\\c\nd')
    for seconds in (0.5, 1, 1.5, 2, 999):
        metrics.time("agentkit_first_text_seconds", seconds)
    lines = metrics.text().splitlines()
    assert r'agentkit_runs_ended_total{outcome="a\"b\\c\nd"} 1' in lines
    named = [line.partition("first_text_seconds")[2] for line in lines]
    expected = ['_bucket{le="0.25"} 0', '_bucket{le="1"} 2', '_bucket{le="+Inf"} 5']
    assert {*expected, "_sum 1004", "_count 5"} <= {*named}
