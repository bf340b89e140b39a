"""A watch hears commits of anybody, and says nothing of what is no news of the library."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import Author, LibraryChange
from agentkit.library.capabilities import Watchable
from agentkit.library.event_chain import EventDraft, chained
from agentkit.library.sqlite import SQLiteStore
from agentkit.testing.conformance.fixtures import start_writer

AT = "2026-11-21T10:00:00+00:00"


def change(proposal_id: str) -> LibraryChange:
    """A change that puts one tool."""
    return LibraryChange(proposal_id=proposal_id, upserts=(ToolDefinition(name=proposal_id),))


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    """A store of each kind that is built in."""
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'store.db'}"
    with closing(open_store(url)) as opened:
        yield opened


@pytest.fixture
def watch(store):
    """A watch on it."""
    with closing(store.watch()) as made:
        yield made


def test_our_stores_can_be_watched(store):
    """Whoever asks whether a store is watchable is told yes."""
    assert isinstance(store, Watchable)


def test_a_commit_of_the_same_object_is_heard_once(store, watch):
    """What was committed before the wait ends it at once; then there is nothing new."""
    assert not watch.wait(0)
    store.commit(change("a"), expected_version=0)
    store.commit(change("b"), expected_version=1)
    assert watch.wait(20)
    assert not watch.wait(0)


def test_a_waiting_thread_is_woken(store, watch):
    """A commit ends a wait that began before it."""
    heard = []
    waiting = threading.Thread(target=lambda: heard.append(watch.wait(20)))
    waiting.start()
    store.commit(change("a"), expected_version=0)
    waiting.join()
    assert heard == [True]


def test_events_alone_are_heard(store, watch):
    """A pin makes no version, and is news all the same."""
    pinned = EventDraft(kind="pinned", author=Author(kind="person", name="Ada"))
    events = chained(None, [pinned], at=AT)
    store.commit(LibraryChange(proposal_id="p", events=events), expected_version=0)
    assert watch.wait(20)


def test_episodes_are_no_news(store, watch):
    """A busy agent keeps episodes all day long; nobody is called for that."""
    store.append(Episode(episode_id="e", request="hello"))
    assert not watch.wait(0.05)


def test_a_change_that_was_applied_before_is_no_news(store, watch):
    """Sending a change again writes nothing."""
    store.commit(change("a"), expected_version=0)
    watch.wait(20)
    store.commit(change("a"), expected_version=0)
    assert not watch.wait(0.05)


def test_closing_ends_a_wait(store, watch):
    """A watch that is closed by another thread says so; a second close does nothing."""
    failed = []

    def wait():
        try:
            watch.wait(20)
        except StoreError as error:
            failed.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    watch.close()
    watch.close()
    waiting.join()
    assert "closed" in failed[0]


def test_a_closed_store_makes_no_watch(store):
    """There is nothing to hear of it."""
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.watch()


def test_another_program_is_heard(tmp_path):
    """The commits of another process into the file end a wait here."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with closing(open_store(url)) as store, closing(store.watch()) as watch:
        with start_writer(url, "commit", "p", 3) as writer:
            assert watch.wait(60)
            writer.communicate()
        assert store.load().version == 3


@pytest.mark.parametrize("away", ["moved", "deleted", "replaced"])
def test_a_file_that_is_not_in_its_place_is_said(tmp_path, away):
    """SQLite would go on with the file that nobody sees; writing to it would lose the change."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store, closing(store.watch()) as watch:
        store.commit(change("a"), expected_version=0)
        watch.wait(20)
        path.rename(tmp_path / "other.db")
        if away == "deleted":
            (tmp_path / "other.db").unlink()
        elif away == "replaced":
            shutil.copy(tmp_path / "other.db", path)
        for act in (
            store.load,
            lambda: store.commit(change("b"), expected_version=1),
            lambda: store.append(Episode(episode_id="e", request="hello")),
            lambda: watch.wait(0),
        ):
            with pytest.raises(StoreUnavailableError, match="moved away, deleted or replaced"):
                act()
        if away == "moved":
            (tmp_path / "other.db").rename(path)
            assert store.commit(change("b"), expected_version=1) == 2
            assert watch.wait(20)


def test_a_locked_file_can_be_watched(tmp_path):
    """A program that holds the write lock keeps nobody from looking."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store, closing(store.watch()) as watch:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert not watch.wait(0.02)
            other.execute("ROLLBACK")
        store.commit(change("a"), expected_version=0)
        assert watch.wait(20)
