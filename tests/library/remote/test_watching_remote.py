"""A watch on a remote library hears commits, and ends when it should."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.app_stage import AppStage
from support.tcp_proxy import TcpProxy

from agentkit import open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import Store
from agentkit.library.event_chain import EventDraft, chained
from agentkit.library.events import Author
from agentkit.library.store import LibraryChange

ENOUGH = 60


def test_a_commit_ends_the_wait(
    store: Store, serve: Callable, open_remote: Callable, put: Callable, tool: Callable
) -> None:
    """Commits before and during a wait are heard; each once."""
    watch = open_remote(serve(store)).watch()
    put(store, tool("a"))
    assert watch.wait(ENOUGH)
    late = threading.Timer(0.2, put, (store, tool("b")))
    late.start()
    assert watch.wait(ENOUGH)
    late.join()
    assert not watch.wait(0.05)
    assert not watch.wait(0)


def test_events_alone_are_heard(store: Store, serve: Callable, open_remote: Callable) -> None:
    """A pin, which makes no version, ends a wait too: it must reach the runs."""
    watch = open_remote(serve(store)).watch()
    draft = EventDraft(kind="pinned", author=Author(kind="person", name="Ada"))
    events = chained(None, [draft], at="2026-11-21T10:00:00+00:00")
    store.commit(LibraryChange(proposal_id="1", events=events), expected_version=0)
    assert watch.wait(ENOUGH)


def test_a_store_that_gives_no_hints_is_polled(
    serve: Callable, open_remote: Callable, put: Callable, tool: Callable
) -> None:
    """The server looks itself while somebody waits."""

    class Silent:
        """A memory store without its watch."""

        def __init__(self) -> None:
            self._store = open_store("memory:")

        def __getattr__(self, name: str) -> object:
            if name == "watch":
                raise AttributeError(name)
            return getattr(self._store, name)

    silent = Silent()
    watch = open_remote(serve(silent)).watch()
    late = threading.Timer(0.1, put, (silent, tool("a")))
    late.start()
    assert watch.wait(ENOUGH)
    late.join()


@pytest.mark.parametrize("ends", ["watch", "store"])
def test_closing_ends_a_wait(
    store: Store, serve: Callable, open_remote: Callable, ends: str
) -> None:
    """Another thread that closes the watch, or its store, ends a wait at once."""
    client = open_remote(serve(store))
    watch = client.watch()
    closing = threading.Timer(0.2, (watch if ends == "watch" else client).close)
    closing.start()
    with pytest.raises(StoreError, match="closed"):
        watch.wait(ENOUGH)
    closing.join()
    with pytest.raises(StoreError, match="closed"):
        watch.wait(0)


def test_a_server_that_stops_lets_go_who_waits(
    stage: AppStage, store: Store, serve: Callable, open_remote: Callable
) -> None:
    """The end of the server ends the wait; the watch hears again when there is a server again."""
    watch = open_remote(serve(store)).watch()
    outcome: list[object] = []

    def wait() -> None:
        try:
            outcome.append(watch.wait(1.5))
        except StoreUnavailableError as error:
            outcome.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    serve(store)  # ends the first, begins another
    waiting.join()
    assert outcome
    assert not outcome[0] or isinstance(outcome[0], StoreUnavailableError)


def test_a_network_that_is_cut(
    stage: AppStage,
    store: Store,
    serve: Callable,
    open_remote: Callable,
    put: Callable,
    tool: Callable,
) -> None:
    """A wait on a broken line says that the store went away; the next one hears what was missed."""
    serve(store)
    with TcpProxy(port=stage.port) as network:
        watch = open_remote(f"http://127.0.0.1:{network.port}?timeout=0.5").watch()
        network.cut()
        put(store, tool("a"))
        with pytest.raises(StoreUnavailableError):
            watch.wait(0.1)
        network.reset()
        network.mend()
        assert watch.wait(ENOUGH)


def test_watching_a_server_that_is_away(open_remote: Callable) -> None:
    """A watch that could not hear is not given."""
    client = open_remote("http://127.0.0.1:9")
    with pytest.raises(StoreUnavailableError):
        client.watch()
