"""Giving databases the newest shape."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import psycopg
import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreFormatError
from agentkit.library import LibraryChange
from agentkit.library.store import Retention, Store
from agentkit.testing.conformance.fixtures import together
from agentkit_postgres import PostgresStore
from agentkit_postgres.address import Address
from agentkit_postgres.steps import STEPS

Raw = Callable[[str], "psycopg.Connection[tuple[object, ...]]"]

PING = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
NEWER = "INSERT INTO agentkit_migrations VALUES (9999, 'm9999_new', now(), '99.0')"


def as_user(url: str, user: str, password: str) -> str:
    """The URL for another user."""
    return f"postgresql://{user}:{password}@{url.partition('@')[2]}"


def test_each_older_shape_is_brought_up_to_date(store_url, raw):
    """A database that stopped at any step goes through the others, once each and in order."""
    schema = Address.parse(store_url).schema
    connection = raw(store_url)
    for done in range(len(STEPS) + 1):
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(
            b"CREATE TABLE agentkit_migrations (position integer PRIMARY KEY, name text NOT NULL "
            b"UNIQUE, applied_at timestamptz NOT NULL DEFAULT now(), applied_by text NOT NULL)"
        )
        for position, name in enumerate(list(STEPS)[:done], start=1):
            connection.execute(STEPS[name].encode())
            row = (position, name, "0.1.0")
            connection.execute("INSERT INTO agentkit_migrations VALUES (%s, %s, now(), %s)", row)
        store = open_store(store_url)
        assert store.commit(PING, expected_version=0) == 1
        assert list(store.check()) == []  # type: ignore[attr-defined]
        store.close()
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def test_openers_of_a_new_database_do_not_collide(store_url, raw):
    """Several that open the same new database at once all get it, and each step ran once."""
    stores = together([partial(open_store, store_url)] * 6)
    assert [isinstance(one, Store) for one in stores] == [True] * 6
    for one in stores:
        assert isinstance(one, Store)
        assert list(one.versions()) == []
        one.close()
    rows = raw(store_url).execute("SELECT name FROM agentkit_migrations ORDER BY position")
    assert [name for (name,) in rows] == list(STEPS)


def test_tables_of_another_program_are_left_alone(store_url, raw):
    """A schema with a table of our names that agentkit did not make is refused as it is."""
    schema = Address.parse(store_url).schema
    connection = raw(store_url)
    connection.execute(f"CREATE SCHEMA {schema}".encode())
    connection.execute("CREATE TABLE episodes (season integer)")
    with pytest.raises(StoreFormatError, match=r"another program.*episodes.*schema="):
        open_store(store_url)
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema])
    assert tables.fetchall() == [("episodes",)]


def test_an_older_program_does_not_write_into_a_newer_shape(store_url, raw):
    """A store that was open when a newer agentkit took the database over reads, and writes no more."""
    store = open_store(store_url)
    store.commit(PING, expected_version=0)
    raw(store_url).execute(NEWER)
    late = LibraryChange(proposal_id="2", removals=("ping",))
    with pytest.raises(StoreFormatError, match=r"m9999_new.*--upgrade agentkit-postgres"):
        store.commit(late, expected_version=1)
    with pytest.raises(StoreFormatError, match="newer agentkit"):
        store.append(Episode(episode_id="e", request="?"))
    assert list(store.load().tools) == ["ping"]
    assert list(store.select()) == []
    store.close()


def test_a_user_who_only_reads(own_store_url, raw):
    """A role with the right to SELECT loads everything; a write says which right it lacks."""
    store = open_store(own_store_url)
    store.commit(PING, expected_version=0)
    store.close()
    schema = Address.parse(own_store_url).schema
    connection = raw(own_store_url)
    for statement in (
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN PASSWORD 'r'",
        f"GRANT USAGE ON SCHEMA {schema} TO reader",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader",
    ):
        connection.execute(statement.encode())
    reader = open_store(as_user(own_store_url, "reader", "r"))
    assert list(reader.load().tools) == ["ping"]
    assert [one.version for one in reader.history("ping")] == [1]
    late = LibraryChange(proposal_id="2", removals=("ping",))
    with pytest.raises(StoreError, match=r"lacks a right.*GRANT"):
        reader.commit(late, expected_version=1)
    with pytest.raises(StoreError, match=r"lacks a right.*GRANT"):
        reader.append(Episode(episode_id="e", request="?"))
    reader.close()
    connection.execute("DROP OWNED BY reader")
    connection.execute("DROP ROLE reader")


def test_a_user_who_writes(own_store_url, raw):
    """The rights that the README names are enough."""
    open_store(own_store_url).close()
    schema = Address.parse(own_store_url).schema
    connection = raw(own_store_url)
    for statement in (
        "DROP ROLE IF EXISTS bot",
        "CREATE ROLE bot LOGIN PASSWORD 'b'",
        f"GRANT USAGE ON SCHEMA {schema} TO bot",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO bot",
    ):
        connection.execute(statement.encode())
    bot = PostgresStore(as_user(own_store_url, "bot", "b"))
    assert bot.commit(PING, expected_version=0) == 1
    bot.append(Episode(episode_id="e", request="?"))
    assert bot.prune(Retention(max_count=0)).count == 1
    assert list(bot.check()) == []
    bot.close()
    connection.execute("DROP OWNED BY bot")
    connection.execute("DROP ROLE bot")


def test_a_database_of_another_encoding_is_refused(own_store_url, raw):
    """A database that cannot hold every character is refused with the line that makes one."""
    connection = raw(own_store_url)
    connection.execute("DROP DATABASE IF EXISTS latin")
    connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match=r"LATIN1.*createdb --encoding=UTF8"):
        open_store(own_store_url.replace("/postgres?", "/latin?"))
    connection.execute("DROP DATABASE latin")
