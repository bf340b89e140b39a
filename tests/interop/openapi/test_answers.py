"""What comes back from an API, and to which addresses calls may go."""

from __future__ import annotations

import asyncio
import gc
import gzip
import socket
import time
import tracemalloc

import httpcore
import httpx
import pytest

from agentkit.errors import ModelRetry, ToolFailed
from agentkit.interop.openapi import CallPolicy, openapi_tools
from agentkit.interop.openapi.public_addresses import (
    NotPublicError,
    is_public,
    public_transport,
)


class Waits(list):
    """Keeps the seconds that would have been waited."""

    async def __call__(self, seconds):
        self.append(seconds)


@pytest.fixture
def waits():
    """How long the caller would have waited."""
    return Waits()


@pytest.fixture
def ask(api, make, waits):
    """Calls an operation after which the API answers as planned."""

    async def call(*planned, method="get", security=None, **policy):
        api.planned = list(planned)
        given = make.operation(method)
        return await api.call(given, options={"policy": CallPolicy(sleep=waits, **policy)})

    return call


@pytest.mark.parametrize("charset", ["punycode", "idna", "hex", "unicode_escape", "none-such", "é"])
async def test_a_server_does_not_choose_the_codec(ask, answers, charset):
    """A charset that no text has, or that takes quadratic time, is read as UTF-8."""
    begun = time.process_time()
    for body in (b"a" * 400_000, b"a-\xff\x00"):
        told = await ask(answers.raw(body, media_type=f"text/plain; charset={charset}"))
        assert told == body.decode("utf-8", "replace")
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("charset", "text"),
    [("Windows-1252", "„é“"), ("Shift_JIS", "日本"), ("ISO-8859-15", "€"), ("UTF-16", "é")],
)
async def test_texts_in_known_charsets_are_read(ask, answers, charset, text):
    """What texts are written in elsewhere is read, whatever letters its name is written in."""
    kind = f"text/plain; charset={charset}"
    assert await ask(answers.raw(text.encode(charset), media_type=kind)) == text


@pytest.mark.parametrize(
    "parameters",
    ['a="' + ";" * 98_000, 'a="' + '\\";' * 33_000, " " * 98_000, "charset=" * 12_000],
)
async def test_a_long_content_type_is_read_in_linear_time(ask, answers, parameters):
    """Python's own parser of that header would hold up the event loop for seconds."""
    begun = time.process_time()
    assert await ask(answers.raw("é".encode(), media_type=f"text/plain; {parameters}")) == "é"
    assert time.process_time() - begun < 0.5


async def test_values_by_media_type(ask, answers):
    """JSON is decoded, text is text, binary content is described and an empty answer told."""
    assert await ask(answers.json({"a": [1]})) == {"a": [1]}
    assert await ask(answers.raw(b'{"a":1}', media_type="application/vnd.x+json")) == {"a": 1}
    assert await ask(answers.raw(b"a,b", media_type="text/csv")) == "a,b"
    assert await ask(answers.raw(b"", status_code=204)) == {"status": 204}
    assert await ask(answers.raw(b"<no json>", media_type="application/json")) == "<no json>"
    assert await ask(answers.raw(b'{"a": NaN}', media_type="application/json")) == {"a": None}
    told = await ask(answers.raw(b"\x89PNG", media_type="image/png"))
    assert told == {
        "status": 200,
        "content_type": "image/png",
        "bytes": 4,
        "note": "the content is binary and is not shown",
    }
    assert (
        await ask(answers.raw("é".encode("latin-1"), media_type="text/plain; charset=latin-1"))
        == "é"
    )


@pytest.mark.parametrize(
    ("status", "body", "signal", "words"),
    [
        (422, {"detail": "name is too long"}, ModelRetry, '{"detail":"name is too long"}'),
        (409, {"message": "taken"}, ModelRetry, "taken"),
        (404, {"message": "Not Found"}, ModelRetry, "look it up first"),
        (401, {"message": "Bad credentials"}, ToolFailed, "credentials do not allow"),
        (403, {}, ToolFailed, "credentials do not allow"),
        (405, {}, ToolFailed, "answered with 405"),
        (418, ["odd"], ToolFailed, '418: ["odd"]'),
    ],
)
async def test_errors_are_put_into_words(ask, answers, status, body, signal, words):
    """What the model can mend is a retry with the server's own reason; the rest is final."""
    with pytest.raises(signal) as caught:
        await ask(answers.json(body, status))
    assert words in caught.value.message
    assert caught.value.message.startswith("GET /x was answered with")


async def test_trouble_is_tried_again(ask, answers, waits):
    """A request that is safe to repeat is repeated with growing waits."""
    assert await ask(answers.json({}, 500), answers.json({}, 503), answers.json(1)) == 1
    assert waits == [0.5, 1.0]
    with pytest.raises(ToolFailed, match=r"502.*try later"):
        await ask(*[answers.json({}, 502)] * 3)


async def test_retry_after_is_kept_to(ask, answers, waits):
    """A wait beyond the time allowed is told instead of waited."""
    assert await ask(answers.json({}, 429, retry_after="3"), answers.json(1)) == 1
    assert waits == [3.0]
    with pytest.raises(ToolFailed, match="asks to wait 3600 s"):
        await ask(answers.json({}, 429, retry_after="3600"))
    assert len(waits) == 1
    assert await ask(answers.json({}, 429, retry_after="soon"), answers.json(1)) == 1


async def test_a_post_is_not_repeated_blindly(api, ask, answers, waits):
    """What may have been done is done again only when the server says that it was not."""
    with pytest.raises(ToolFailed, match="500"):
        await ask(answers.json({}, 500), method="post")
    assert len(api.seen) == 1
    assert await ask(answers.json({}, 429), answers.json(1), method="post") == 1
    assert await ask(answers.json({}, 503, retry_after="1"), answers.json(1), method="post") == 1


@pytest.mark.parametrize(
    "body",
    [b"[" * 300 + b"]" * 300, b"[" * 100_000, b"[" + b"[]," * 600_000 + b"[]]"],
    ids=["deep", "no end", "wide"],
)
@pytest.mark.parametrize("status", [200, 422])
async def test_an_answer_without_end_is_a_failure_in_words(ask, answers, body, status):
    """Few bytes that stand for many levels or values neither break a walk nor fill memory."""
    answer = answers.raw(body, media_type="application/json", status_code=status)
    with pytest.raises((ToolFailed, ModelRetry)) as caught:
        await ask(answer)
    assert "nested too deeply" in str(caught.value) or "values" in str(caught.value) or status > 200
    assert len(str(caught.value)) < 1_000


async def test_an_answer_that_is_too_long_is_cut_off(ask, answers):
    """The model is told to ask for less; nothing is kept of it."""
    with pytest.raises(ModelRetry, match="longer than the 1,000 bytes"):
        await ask(answers.text("x" * 1001), max_response_bytes=1000)
    assert await ask(answers.text("x" * 1000), max_response_bytes=1000) == "x" * 1000


class Pieces(httpx.AsyncByteStream):
    """A body that comes in pieces."""

    def __init__(self, pieces):
        self.pieces = pieces

    async def __aiter__(self):
        for piece in self.pieces:
            yield piece


def answering(make, pieces, **headers):
    """The tool of an API whose answers come in such pieces."""

    def answer(request):
        assert request.headers["accept-encoding"] == "gzip, deflate"
        return httpx.Response(200, headers=headers, stream=Pieces(pieces))

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return openapi_tools(make.operation(), client=client)["it"]


async def test_a_compressed_answer_is_unpacked_no_further_than_the_limit(make):
    """Few bytes that stand for very many take no memory; honest ones are read."""
    text = {"content_type": "text/plain", "content_encoding": "gzip"}
    headers = {name.replace("_", "-"): value for name, value in text.items()}
    assert await answering(make, [gzip.compress(b"hello")], **headers)() == "hello"
    tool = answering(make, [gzip.compress(b"0" * 200_000_000, 9)], **headers)
    tracemalloc.start()
    try:
        with pytest.raises(ModelRetry, match="longer than the 2,000,000 bytes"):
            await tool()
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    for encoding, why in (("br", "not asked for: br"), ("gzip", "is damaged")):
        with pytest.raises(ToolFailed, match=why):
            await answering(make, [b"abc"], **{"content-encoding": encoding})()


async def test_an_answer_in_crumbs_does_not_hold_up_others(make):
    """Others get their turn, and soon nobody reads on; an answer in honest pieces is read."""
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    with pytest.raises(ToolFailed, match=r"in more than 4,0.. pieces of a few bytes"):
        await answering(make, [b"1"] * 1_000_000, **{"content-type": "text/plain"})()
    beside.cancel()
    assert turns > 30
    pieces = [b"x" * 80] * 10_000
    told = await answering(make, pieces, **{"content-type": "text/plain"})()
    assert len(told) == 800_000


async def test_a_server_that_does_not_answer(live, make, bound):
    """After the time allowed the call fails in words."""
    live.planned = [1.0, 1.0]
    policy = CallPolicy(timeout_seconds=0.2)
    (get,) = bound(make.operation(), server=live.url, policy=policy)
    with pytest.raises(ToolFailed, match=r"did not answer within 0\.2 seconds$"):
        await get()
    (post,) = bound(make.operation("post"), server=live.url, policy=policy)
    with pytest.raises(ToolFailed, match="it may or may not have been done"):
        await post()


async def test_a_server_that_is_not_there(make, waits, bound):
    """A refused connection is tried again and then told, without the URL's query."""
    policy = CallPolicy(sleep=waits)
    given = make.operation("post", parameters=[make.parameter("q", "query")])
    (tool,) = bound(given, server="http://127.0.0.1:9", policy=policy)
    with pytest.raises(ToolFailed, match=r"127\.0\.0\.1:9 could not be reached") as caught:
        await tool(q="private")
    assert "private" not in caught.value.message
    assert len(waits) == 2


@pytest.mark.parametrize(("method", "tries"), [("get", 3), ("post", 1)])
async def test_a_request_without_an_answer_is_repeated_where_that_is_safe(
    make, waits, method, tries
):
    """What broke off may have been done, so that only what repeats safely is sent again."""
    sent = []

    def breaks_off(request):
        sent.append(request)
        raise httpx.ReadError("gone")

    client = httpx.AsyncClient(transport=httpx.MockTransport(breaks_off))
    tools = openapi_tools(make.operation(method), client=client, policy=CallPolicy(sleep=waits))
    with pytest.raises(ToolFailed, match="broke off"):
        await tools["it"]()
    assert len(sent) == tries


async def test_redirects_stay_on_the_host(live, another, make, answers, monkeypatch, bound):
    """On the same host they are followed; elsewhere never with credentials."""
    given = make.operation(
        security=[{"key": []}],
        components={"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    )
    from agentkit.interop.openapi import Env

    monkeypatch.setenv("KEY", "tops3cret")
    auth = {"key": Env("KEY")}
    (tool,) = bound(given, server=live.url, auth=auth)
    live.planned = [answers.to("/elsewhere", 302)]
    assert (await tool())["path"] == "/elsewhere"
    assert live.seen[-1][2]["authorization"] == "Bearer tops3cret"
    for target in (f"{another.url}/taken", "http://[bad", "http://a:999999/", "file:///etc/passwd"):
        live.planned = [answers.raw(b"", 302, headers={"Location": target})]
        with pytest.raises(ToolFailed, match="leads elsewhere, and that is not followed"):
            await tool()
    assert another.seen == []
    live.planned = [answers.to("/loop") for _ in range(9)]
    with pytest.raises(ToolFailed, match="not followed"):
        await tool()


async def test_cookies_are_not_kept(live, make, answers, bound):
    """What one call is told is not sent with the next, which may be for somebody else.

    Nor is it read: Python takes quadratic time for an old kind of cookie.
    """
    (tool,) = bound(make.operation(), server=live.url)
    live.planned = [answers.json(1, set_cookie="session=1", set_cookie2="a," * 30_000)]
    begun = time.process_time()
    await tool()
    assert time.process_time() - begun < 0.25
    await tool()
    assert "cookie" not in live.seen[1][2]


CALLS = 8


class Server:
    """Answers over real sockets, and counts those that are open."""

    def __init__(self):
        self.open = 0
        self.seen = 0

    async def answer(self, reader, writer):
        """One connection, kept alive."""
        self.open += 1
        self.seen += 1
        try:
            while await reader.readline():
                while (await reader.readline()).strip():
                    pass
                await asyncio.sleep(0.02)  # so that calls at a time need connections of their own
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        finally:
            self.open -= 1
            writer.close()


async def called(server, tools):
    """Open some connections at a time."""
    await asyncio.gather(*(tools["it"]() for _ in range(CALLS)))
    assert server.open == CALLS


async def test_tools_dropped_in_a_loop_that_goes_on(make):
    """Their connections are closed soon after, so that a server which makes tools leaks none."""
    server = Server()
    async with await asyncio.start_server(server.answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        tools = openapi_tools(make.operation(), server=f"http://127.0.0.1:{port}")
        await called(server, tools)
        del tools
        gc.collect()
        async with asyncio.timeout(5):
            while server.open:
                await asyncio.sleep(0.01)
        assert server.open == 0


ONCE = CallPolicy(max_retries=0)
ELSEWHERE = "https://specs.example.com/api.json"


def sent_to(make, url):
    """A description whose calls go to ``url``."""
    return {**make.operation(), "servers": [{"url": url}]}


@pytest.mark.parametrize(
    "reference",
    [
        "ftp://docs.example.com/a",
        "s3://bucket/a",
        "git+https://github.com/x",
        "data:,x",
        "//docs.example.com/a",
        "https://docs.example.com\\@localhost/a",
        "HTTPS:docs.example.com",
    ],
)
async def test_whatever_is_no_file_is_a_description_of_others(make, live, bound, reference):
    """Only what has no scheme, or that of files, was lying on this machine."""
    with pytest.raises(ToolFailed, match="is not a public address"):
        await bound(sent_to(make, live.url), reference=reference)["it"]()
    assert live.seen == []


@pytest.mark.parametrize("written", ["127.0.0.1", "localhost", "0x7f.1", "2130706433"])
async def test_a_remote_description_may_not_name_a_private_server(make, live, bound, written):
    """However the address is written, nothing is sent there."""
    url = live.url.replace("127.0.0.1", written)
    tools = bound(sent_to(make, url), reference=ELSEWHERE)
    with pytest.raises(ToolFailed, match="is not a public address") as caught:
        await tools["it"]()
    assert f"can allow it with server='{url}'" in str(caught.value)
    assert live.seen == []


async def test_the_caller_may_name_any_server(make, live, bound):
    """What the person who runs the program writes is meant."""
    tools = bound(sent_to(make, "http://10.0.0.1"), reference=ELSEWHERE, server=live.url)
    await tools["it"]()
    assert len(live.seen) == 1


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "api.json",
        "file:///home/ada/api.json",
        "C:\\api.json",
        "http://localhost:1/api.json",
        "http://192.168.0.9/api.json",
    ],
)
async def test_a_description_from_near_may_name_servers_that_are_near(make, live, bound, reference):
    """A file of the caller's, or an API under development, is nobody else's word."""
    await bound(sent_to(make, live.url), reference=reference)["it"]()
    assert len(live.seen) == 1


async def test_a_name_that_nobody_knows_is_told_as_such(make):
    """A failed look-up is not a refusal."""
    given = sent_to(make, "https://api.invalid")
    async with openapi_tools(given, reference=ELSEWHERE, policy=ONCE) as tools:
        with pytest.raises(ToolFailed, match="could not be reached"):
            await tools["it"]()


PRIVATE = """
    10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 169.254.169.254 0.0.0.0 224.0.0.1 255.255.255.255
    ::1 :: fe80::1%eth0 fd00::1 ff02::1 ::ffff:10.0.0.1 64:ff9b::7f00:1 2002:7f00:1::
    fec0::1 ::127.0.0.1 ::10.0.0.1 ::ffff:0:10.0.0.1 64:ff9b:1::7f00:1 64:ff9b:1::a00:1
    2001:0:7f00:1:: 2001:db8::1 5f00::1 100::1 3fff::1
    100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254 192.88.99.1 240.0.0.1
"""


@pytest.mark.parametrize("address", PRIVATE.split())
def test_addresses_for_special_purposes(address):
    """Those of the own network and of a cloud's inside, also wrapped into IPv6, are not public."""
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"]
)
def test_addresses_for_everyone(address):
    """Addresses of the public network are public."""
    assert is_public(address)


class Network(httpcore.AsyncMockBackend):
    """Connections that lead nowhere: what was connected to, and each says the same."""

    def __init__(self, answer, unreachable=()):
        super().__init__([answer])
        self.asked = []
        self.names = []
        self.unreachable = unreachable

    async def connect_tcp(self, host, port, *args, **kwargs):
        self.asked.append(host)
        if host in self.unreachable:
            raise httpcore.ConnectError("unreachable")
        stream = await super().connect_tcp(host, port, *args, **kwargs)
        return Noted(stream, self.names)


class Noted(httpcore.AsyncMockStream):
    """A stream that notes whose certificate is expected."""

    def __init__(self, stream, names):
        super().__init__(list(stream._buffer))
        self._names = names

    async def start_tls(self, ssl_context, server_hostname=None, **kwargs):
        self._names.append(server_hostname)
        return self


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@pytest.fixture
def addresses_of(monkeypatch):
    """What names lead to, one list of addresses after another; the last one stays."""
    queue = []

    def look_up(host, port, *args, **kwargs):
        addresses = queue.pop(0) if len(queue) > 1 else queue[0]
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses
        ]

    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return queue


async def test_the_connection_goes_to_the_address_that_was_checked(addresses_of):
    """A name that leads elsewhere when it is asked again, does not lead there."""
    addresses_of += [["1.1.1.1"], ["127.0.0.1"]]
    network = Network(OK)
    async with httpx.AsyncClient(transport=public_transport(backend=network)) as client:
        response = await client.get("https://rebind.example/x")
        assert (response.status_code, network.asked) == (200, ["1.1.1.1"])
        assert network.names == ["rebind.example"], "the certificate is still that of the name"
        assert response.request.headers["host"] == "rebind.example"
        with pytest.raises(NotPublicError, match=r"rebind.example is 127.0.0.1"):
            await client.get("https://rebind.example/x")
    assert network.asked == ["1.1.1.1"]


async def test_one_private_address_among_public_ones_refuses_the_name(addresses_of):
    """Nothing is tried out: a name with a private address is not connected to at all."""
    addresses_of += [["1.1.1.1", "10.0.0.1"]]
    network = Network(OK)
    async with httpx.AsyncClient(transport=public_transport(backend=network)) as client:
        with pytest.raises(NotPublicError):
            await client.get("http://both.example/")
    assert network.asked == []


async def test_the_next_address_is_tried(addresses_of):
    """A server with an address that is out of order answers at its other one."""
    addresses_of += [["1.1.1.1", "8.8.8.8"]]
    network = Network(OK, unreachable=("1.1.1.1",))
    async with httpx.AsyncClient(transport=public_transport(backend=network)) as client:
        assert (await client.get("http://twice.example/")).status_code == 200
    assert network.asked == ["1.1.1.1", "8.8.8.8"]


async def test_a_redirect_is_checked_like_a_call(addresses_of):
    """Whoever follows redirects through this transport is held to it at each step."""
    addresses_of += [["1.1.1.1"], ["169.254.169.254"]]
    away = b"HTTP/1.1 302 Found\r\nLocation: http://other.example/\r\nContent-Length: 0\r\n\r\n"
    network = Network(away)
    transport = public_transport(backend=network)
    async with httpx.AsyncClient(transport=transport, follow_redirects=True) as client:
        with pytest.raises(NotPublicError, match=r"other.example is 169.254.169.254"):
            await client.get("http://first.example/")


async def test_a_proxy_is_not_asked(make, another, monkeypatch):
    """A proxy would look names up itself, so what needs a look connects past it."""
    monkeypatch.setenv("HTTP_PROXY", another.url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    given = sent_to(make, "http://localhost:1")
    async with openapi_tools(given, reference=ELSEWHERE, policy=ONCE) as tools:
        with pytest.raises(ToolFailed, match="is not a public address"):
            await tools["it"]()
    assert another.seen == []
