"""What was worked out about a library is kept in the database for the next program."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from agentkit_postgres import PostgresStore

Raw = Callable[[str], "psycopg.Connection[tuple[object, ...]]"]


def test_entries_are_kept_for_others(store_url: str) -> None:
    """Bytes that one program put are there for another one, and absent keys are left out."""
    with closing(PostgresStore(store_url)) as store, closing(PostgresStore(store_url)) as replica:
        cache, other = store.load().cache, replica.load().cache
        assert cache is not None
        assert other is not None
        cache.put({"a": b"one", "b": bytes(range(256)) * 1000})
        cache.put({"a": b"two"}, keep=["b"])
        assert other.get(["a", "b", "c"]) == {"a": b"two", "b": bytes(range(256)) * 1000}


def test_entries_that_nobody_names_go(store_url: str) -> None:
    """An entry goes when four writes did not name it; one that is kept stays."""
    with closing(PostgresStore(store_url)) as store:
        cache = store.load().cache
        assert cache is not None
        cache.put({"old": b"1", "used": b"2"})
        for number in range(4):
            cache.put({f"new {number}": b"3"}, keep=["used"])
        assert set(cache.get(["old", "used", "new 3"])) == {"used", "new 3"}


def test_damage_costs_nothing_but_time(
    store_url: str, raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged entry is told of and counts as absent; a store that is closed gives none."""
    caplog.set_level(logging.INFO)
    store = PostgresStore(store_url)
    cache = store.load().cache
    assert cache is not None
    cache.put({"a": b"one"})
    raw(store_url).execute("UPDATE derived SET body = 'other'")
    assert cache.get(["a"]) == {}
    assert "damaged" in caplog.text
    store.close()
    assert cache.get(["a"]) == {}
    cache.put({"a": b"two"})
    assert "not kept" in caplog.text
