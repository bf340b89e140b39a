"""Keys and passwords: from the environment, to one host, and shown nowhere."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from support.model_server import FaultyServer
from support.server_steps import RawReply

from agentkit import open_store
from agentkit.errors import StoreError, UsageError
from agentkit.library import Store
from agentkit.library.remote.client import read_address
from agentkit.server.keys import Keys

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hunter2@tools.example/",
        "https://hunter2@tools.example",
        "https://tools.example?key=hunter2",
        "https://tools.example?token=hunter2",
        "https://tools.example?hunter2",
        "https://tools.example#hunter2",
        "https://tools.example:hunter2",
        "https://[hunter2",
        "https://tools.example?timeout=hunter2",
        "https://tools.example?timeout=nan",
        "https://tools.example?signed-from=hunter2",
        "https://tools.example?cache=",
        "https:///hunter2",
        "http:hunter2",
    ],
)
def test_a_url_that_is_not_usable_is_refused_without_repeating_it(url: str) -> None:
    """What is wrong may be that it holds a secret, so the message names the variable instead."""
    with pytest.raises(UsageError) as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("HTTPS://Tools.Example/", "https://tools.example"),
        ("http://h:80/team-a/library/v1/?cache=none", "http://h:80/team-a"),
        ("http://[::1]:8000?timeout=2.5&signed-from=3", "http://[::1]:8000"),
    ],
)
def test_a_url_is_taken_apart(url: str, shown: str) -> None:
    """Path and options are understood, whichever way they are written."""
    assert str(read_address(url)) == shown


def test_the_key_of_the_environment_is_sent(
    store: Store,
    serve: Callable,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With the right key the library is read; the key is in no text that anybody sees."""
    caplog.set_level(logging.DEBUG)
    url = f"{serve(store, keys=Keys({'edge': KEY}))}?cache=none"
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
def test_a_key_that_no_header_can_hold(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """It is refused when the store is opened, without being repeated."""
    monkeypatch.setenv("AGENTKIT_LIBRARY_KEY", key)
    with pytest.raises(UsageError, match="AGENTKIT_LIBRARY_KEY") as caught:
        open_store("https://tools.example")
    assert key[:5] not in str(caught.value)


def test_the_words_of_a_server_are_cut(open_remote: Callable) -> None:
    """A server's own words are shown as a short quote, so that no log is flooded by them."""
    body = {"error": {"message": "x" * 5_000 + "\n\x1b[31m"}}
    with (
        FaultyServer(lambda _: RawReply(status=503, body=body)) as server,
        pytest.raises(StoreError) as caught,
    ):
        open_remote(f"{server.root_url}?cache=none").load()
    assert len(str(caught.value)) < 400
    assert "\x1b" not in str(caught.value)
