"""A description from elsewhere cannot send calls into the own network."""

import socket

import httpcore
import httpx
import pytest

from agentkit.errors import ToolFailed
from agentkit.interop.openapi import CallPolicy, openapi_tools
from agentkit.interop.openapi.public_addresses import (
    NotPublicError,
    is_public,
    public_transport,
)

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
def answers(monkeypatch):
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


async def test_the_connection_goes_to_the_address_that_was_checked(answers):
    """A name that leads elsewhere when it is asked again, does not lead there."""
    answers += [["1.1.1.1"], ["127.0.0.1"]]
    network = Network(OK)
    async with httpx.AsyncClient(transport=public_transport(backend=network)) as client:
        response = await client.get("https://rebind.example/x")
        assert (response.status_code, network.asked) == (200, ["1.1.1.1"])
        assert network.names == ["rebind.example"], "the certificate is still that of the name"
        assert response.request.headers["host"] == "rebind.example"
        with pytest.raises(NotPublicError, match=r"rebind.example is 127.0.0.1"):
            await client.get("https://rebind.example/x")
    assert network.asked == ["1.1.1.1"]


async def test_one_private_address_among_public_ones_refuses_the_name(answers):
    """Nothing is tried out: a name with a private address is not connected to at all."""
    answers += [["1.1.1.1", "10.0.0.1"]]
    network = Network(OK)
    async with httpx.AsyncClient(transport=public_transport(backend=network)) as client:
        with pytest.raises(NotPublicError):
            await client.get("http://both.example/")
    assert network.asked == []


async def test_the_next_address_is_tried(answers):
    """A server with an address that is out of order answers at its other one."""
    answers += [["1.1.1.1", "8.8.8.8"]]
    network = Network(OK, unreachable=("1.1.1.1",))
    async with httpx.AsyncClient(transport=public_transport(backend=network)) as client:
        assert (await client.get("http://twice.example/")).status_code == 200
    assert network.asked == ["1.1.1.1", "8.8.8.8"]


async def test_a_redirect_is_checked_like_a_call(answers):
    """Whoever follows redirects through this transport is held to it at each step."""
    answers += [["1.1.1.1"], ["169.254.169.254"]]
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
