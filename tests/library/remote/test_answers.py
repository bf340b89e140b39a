"""Wrong answers are told apart in words that say what to do, and no secret is told."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from support.model_server import FaultyServer
from support.server_steps import ErrorStatus, RawReply

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError, UsageError
from agentkit.library.changes import definition_to_json
from agentkit.library.remote import RemoteStore, client as library_client
from agentkit.server.keys import Keys

HEAD = {"format": 3, "version": 1, "library": "0" * 64, "events": {"sequence": 0, "hash": ""}}


def lines_of(*records: Any, status: int = 200, **headers: str) -> RawReply:
    """An answer of these lines, each text as it is or data as JSON."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    body = "".join(f"{line}\n" for line in lines)
    return RawReply(body=body, status=status, content_type="application/x-ndjson", headers=headers)


@contextmanager
def raw_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Answers each connection with bytes of its own; gives the URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    open_ones: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                one, _ = listener.accept()
                open_ones.append(one)
                with suppress(OSError):
                    one.recv(65_536)
                    answer(one)
                one.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for one in open_ones:
            one.close()
        thread.join()


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        (
            RawReply(body="<html>Log in</html>", content_type="text/html"),
            StoreFormatError,
            "log in",
        ),
        (lines_of("no json"), StoreFormatError, "not JSON"),
        (lines_of('{"a":' * 300 + "1" + "}" * 300), StoreFormatError, "nested too deeply"),
        (lines_of({}), StoreFormatError, "not the head"),
        (lines_of({**HEAD, "version": -1}), StoreFormatError, "not the head"),
        (lines_of(), StoreFormatError, "not the head"),
        (lines_of('{"format": NaN}'), StoreFormatError, "not JSON"),
        (lines_of("[" * 100_000), StoreFormatError, "not JSON"),
        (lines_of({**HEAD, "format": 4}), StoreFormatError, "upgrade agentkit-evolve"),
        (lines_of({}, **{"Content-Encoding": "br"}), StoreFormatError, "packed by 'br'"),
        (RawReply(status=404), StoreError, "refuses the request"),
        (RawReply(status=401), StoreError, "AGENTKIT_LIBRARY_KEY"),
        (RawReply(status=204), StoreError, "refuses the request"),
        (ErrorStatus(status=503, message="busy"), StoreUnavailableError, "busy"),
        (RawReply(status=502, content_type="text/html"), StoreUnavailableError, "status 502"),
    ],
    ids=lambda value: None if isinstance(value, type) else str(value)[:30],
)
def test_what_is_no_head(open_remote, reply, error, words):
    """Each kind of wrong answer is told apart, in words that say what to do."""
    with FaultyServer(lambda _: reply) as server:
        client = open_remote(server.root_url)
        with pytest.raises(error, match=words) as caught:
            client.load()
        assert type(caught.value) is error


def test_a_redirect_is_not_followed(open_remote):
    """The key was meant for one host; where the server sends its clients is not tried, nor told."""
    place = "https://user:secret@other.example:8443/x"
    with FaultyServer(lambda _: RawReply(status=302, headers={"Location": place})) as server:
        client = open_remote(server.root_url, key="sk-secret")
        with pytest.raises(StoreError, match="nobody follows") as caught:
            client.load()
    assert "secret" not in str(caught.value)
    assert len(server.requests) == 1


A = ToolDefinition(name="a")
ADDED = {"version": 1, "proposal_id": "p", "upserts": [definition_to_json(A)]}
EVENT = {"kind": "pinned", "author": {"kind": "person", "name": "Ada"}, "at": "", "sequence": 1}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([{"proposal_id": "p"}], "its version is None"),
        ([{**ADDED, "proposal_id": 7}], "not a change"),
        ([{**ADDED, "proposal_id": ""}], "needs a proposal_id"),
        ([{**ADDED, "upserts": [{"digest": "x"}]}], "not a definition"),
        ([{**ADDED, "upserts": [{**ADDED["upserts"][0], "digest": "00"}]}], "not 00"),
        ([{**ADDED, "upserts": ADDED["upserts"] * 2}], "more than once"),
        ([{**ADDED, "removals": ["b"]}], "changes what is not there"),
        ([], "what came is version 0"),
        ([ADDED, ADDED], "was not asked for"),
        ([ADDED, {**ADDED, "version": 2}], "was not asked for"),
        ([{**ADDED, "version": 2}], "are missing"),
        ([{**ADDED, "events": [EVENT]}], "was not asked for"),
        ([ADDED], "should have digest"),
        ([{**EVENT, "sequence": "1"}], "not a library event"),
        ([ADDED, {**EVENT, "sequence": 2}], "not whole"),
        ([ADDED, EVENT], "should be event 1, not this 0"),
    ],
)
def test_what_is_no_history(open_remote, lines, words):
    """Changes and events that are none, or that nobody asked for, are refused."""
    with FaultyServer(lambda _: lines_of(HEAD, *lines)) as server:
        client = open_remote(server.root_url)
        with pytest.raises(StoreFormatError, match=words):
            client.load()


def test_a_small_answer_that_unpacks_to_very_much(open_remote):
    """Nothing is unpacked that nobody asked to be packed, so a bomb is no danger."""
    bomb = gzip.compress(b"\n" * 20_000_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\n"
    length = f"Content-Length: {len(bomb)}\r\n\r\n".encode()
    with raw_server(lambda one: one.sendall(head + length + bomb)) as url:
        client = open_remote(url)
        with pytest.raises(StoreFormatError, match="packed by 'gzip'"):
            client.load()


@pytest.mark.parametrize("part", ["head", "headers", "body"])
def test_bytes_that_drip(open_remote, part):
    """However slowly it comes, an answer has its time, and no more."""
    stop = threading.Event()
    begin = {
        "head": b"",
        "headers": b"HTTP/1.1 200 OK\r\nX: ",
        "body": b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n",
    }[part]

    def drip(one: socket.socket) -> None:
        one.sendall(begin)
        while not stop.wait(0.05):
            one.sendall(b"H" if part == "head" else b" ")

    with raw_server(drip) as url:
        client = open_remote(f"{url}?timeout=0.4")
        with pytest.raises(StoreUnavailableError, match=r"within 0.4 s|cannot be reached"):
            client.load()
        stop.set()


@pytest.mark.parametrize(
    "alter",
    [
        lambda lines: lines[:-1],
        lambda lines: [json.loads(json.dumps(one).replace("a text", "b text")) for one in lines],
        lambda lines: [*lines, lines[-1]],
        lambda lines: lines[:1],
    ],
    ids=["one less", "other words", "one twice", "nothing"],
)
def test_an_answer_that_is_not_true_is_refused(store, serve, open_remote, put, tool, alter):
    """What does not fit its digests is refused as a whole; the next one is read on top of what was known."""
    put(store, tool("a", "a text"), tool("b", "a text"))
    is_lying = False

    def lie(path: str, query: object, lines: list) -> list:
        return alter(lines) if is_lying else lines

    client = open_remote(serve(store, alter=lie))
    client.load()
    put(store, tool("a", "a text of its own"), tool("c", "a text"))
    put(store, tool("d", "a text"))
    is_lying = True
    with pytest.raises(StoreFormatError):
        client.load()
    is_lying = False
    assert client.load().definitions == store.load().definitions


def test_what_comes_is_bounded(store, serve, put, tool, monkeypatch):
    """Lines and the library as a whole are bounded."""
    put(store, tool("a", "text " * 1_000))
    url = serve(store)
    for bound, words in (
        ("LINE_BYTES", "a line of the answer"),
        ("LIBRARY_BYTES", "more than 1,000 bytes"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(library_client, bound, 1_000)
            client = RemoteStore(url)
            with pytest.raises(StoreFormatError, match=words):
                client.load()
            client.close()


def test_lines_that_say_nothing_take_room_too(store, serve, put, monkeypatch):
    """Millions of them would otherwise fill the memory below every bound."""
    put(store, ToolDefinition(name="a"))

    def fill(path: str, query: object, lines: list) -> list:
        return [*lines, *({"version": at, "proposal_id": "p"} for at in range(1, 10_000))]

    url = serve(store, alter=fill)
    monkeypatch.setattr(library_client, "LIBRARY_BYTES", 1_000_000)
    client = RemoteStore(url)
    with pytest.raises(StoreFormatError, match="more than 1,000,000 bytes"):
        client.load()
    client.close()


KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hunter2@tools.example/",
        "https://hunter2@tools.example",
        "https://tools.example?key=hunter2",
        "https://tools.example#hunter2",
        "https://tools.example:hunter2",
        "https://tools.example?timeout=hunter2",
        "https://tools.example?signed-from=hunter2",
        "https://tools.example?cache=",
        "http:hunter2",
    ],
)
def test_a_url_that_is_not_usable_is_refused_without_repeating_it(url):
    """What is wrong may be that it holds a secret, so the message names the variable instead."""
    with pytest.raises(UsageError) as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


def test_the_key_of_the_environment_is_sent(store, serve, monkeypatch, caplog):
    """With the right key the library is read; the key is in no text that anybody sees."""
    caplog.set_level(logging.DEBUG)
    url = serve(store, keys=Keys({"edge": KEY}))
    for given, words in ((None, "a client without a key"), ("sk-wrong-0123456789", "the key")):
        if given:
            monkeypatch.setenv("AGENTKIT_LIBRARY_KEY", given)
        client = open_store(url)
        with pytest.raises(StoreError, match=f"does not let {words} in"):
            client.load()
        client.close()
    monkeypatch.setenv("AGENTKIT_LIBRARY_KEY", f"{KEY}\n")
    client = open_store(url)
    assert client.load().version == 0
    assert "unencrypted" in caplog.text
    assert KEY not in f"{client!r} {caplog.text}"
    client.close()


@pytest.mark.parametrize("key", ["sk-caf\u00e9-0123456789", "sk-a b", "sk-a\nX-Other: b"])
def test_a_key_that_no_header_can_hold(monkeypatch, key):
    """It is refused when the store is opened, without being repeated."""
    monkeypatch.setenv("AGENTKIT_LIBRARY_KEY", key)
    with pytest.raises(UsageError, match="AGENTKIT_LIBRARY_KEY") as caught:
        open_store("https://tools.example")
    assert key[:5] not in str(caught.value)
