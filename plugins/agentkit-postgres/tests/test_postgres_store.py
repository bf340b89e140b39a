"""PostgreSQL passes the suite of stores; order, texts, derived values and damage beyond it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from time import sleep

import psycopg
import pytest
from hypothesis import given, settings, strategies as st
from support.postgres_server import empty_store_url
from support.store_conformance import ServedStoreConformance

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn
from agentkit.library import EpisodeFilter, LibraryChange
from agentkit.library.checking import check_store
from agentkit.library.copying import copy_store
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import sample_library
from agentkit.testing.conformance.writer import batch, with_event
from agentkit.tools.definition import Description
from agentkit_postgres import PostgresStore
from agentkit_postgres.address import Address
from agentkit_postgres.encoding import is_cut, key, restored, storable

Raw = Callable[[str], "psycopg.Connection[tuple[object, ...]]"]

OLDEST_SHAPE = """
CREATE TABLE agentkit_migrations (
    position integer PRIMARY KEY, name text NOT NULL UNIQUE,
    applied_at timestamptz NOT NULL DEFAULT now(), applied_by text NOT NULL
);
INSERT INTO agentkit_migrations VALUES (1, 'm0001_tool_tables', now(), '0.1.0');
CREATE TABLE definitions (digest text PRIMARY KEY, name text NOT NULL, body text NOT NULL);
CREATE TABLE versions (
    version bigint PRIMARY KEY, proposal_key text NOT NULL UNIQUE, proposal_id text NOT NULL,
    author text NOT NULL, reason text NOT NULL, evidence text NOT NULL, created_at text NOT NULL
);
CREATE TABLE revisions (
    version bigint NOT NULL REFERENCES versions, tool_name text NOT NULL,
    digest text REFERENCES definitions, origin text, since bigint NOT NULL, place bigint NOT NULL,
    replaced_in bigint, PRIMARY KEY (tool_name, version)
);
CREATE INDEX revisions_by_version ON revisions (version);
CREATE INDEX revisions_by_digest ON revisions (digest);
CREATE UNIQUE INDEX revisions_current ON revisions (tool_name) WHERE replaced_in IS NULL;
CREATE TABLE documents (
    digest text PRIMARY KEY REFERENCES definitions, document jsonb NOT NULL, words tsvector NOT NULL
);
CREATE INDEX documents_by_word ON documents USING gin (words);
CREATE FUNCTION words_of(name text, summary text, texts text) RETURNS tsvector
LANGUAGE sql IMMUTABLE AS $$
    SELECT setweight(to_tsvector('pg_catalog.english', name), 'A')
        || setweight(to_tsvector('pg_catalog.english', summary), 'B')
        || setweight(to_tsvector('pg_catalog.english', texts), 'C')
$$;
CREATE FUNCTION any_word(words text) RETURNS tsquery LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(string_agg(quote_literal(lexeme), ' | '), '')::tsquery
    FROM unnest(to_tsvector('pg_catalog.english', words))
$$;
CREATE VIEW tools AS
    SELECT r.tool_name, r.version, d.digest,
           d.document #>> '{description,summary}' AS summary, d.document, d.words
    FROM revisions AS r JOIN documents AS d ON d.digest = r.digest
    WHERE r.replaced_in IS NULL;
INSERT INTO definitions VALUES (
    'DIGEST', 'ping',
    '{"format":1,"name":"ping","signature":{"parameters":{"type":"object","properties":{}}}}'
);
INSERT INTO documents SELECT digest, body::jsonb, words_of(name, '', '') FROM definitions;
INSERT INTO versions
VALUES (1, 'first', 'first', 'Ada', 'import', '["e1"]', '2026-03-02T10:00:00+00:00');
INSERT INTO revisions VALUES (1, 'ping', 'DIGEST', '{"kind":"function"}', 1, 0);
"""
"""What the first step made, frozen."""

PING = "22bbda25fb5f9a911dc33e59955a7724fe19e8fb89049681a86549142a6314a6"


class TestPostgresStore(ServedStoreConformance):
    """A database: everything applies."""

    @pytest.fixture
    def store_url(self, server_url):
        with empty_store_url(server_url) as url:
            yield url

    @pytest.fixture
    def oldest_store_url(self, store_url, raw):
        connection = raw(store_url)
        connection.execute(f"CREATE SCHEMA {Address.parse(store_url).schema}".encode())
        connection.execute(OLDEST_SHAPE.replace("DIGEST", PING).encode())
        return store_url

    @pytest.fixture
    def newer_store_url(self, store_url, raw):
        open_store(store_url).close()
        raw(store_url).execute(
            "INSERT INTO agentkit_migrations VALUES (9999, 'm9999_new', now(), '99.0')"
        )
        return store_url

    @pytest.fixture
    def raw_contents(self, raw):
        def read(url: str) -> object:
            connection = raw(url)
            tables = connection.execute(
                "SELECT relname, relkind FROM pg_class WHERE relnamespace = "
                "current_schema()::regnamespace ORDER BY relname"
            ).fetchall()
            return tables, connection.execute("SELECT * FROM agentkit_migrations").fetchall()

        return read

    @pytest.fixture
    def edit_definitions(self, raw):
        def edit_all(url: str, edit: Callable[[str], str]) -> None:
            connection = raw(url)
            for digest, body in connection.execute("SELECT digest, body FROM definitions"):
                statement = "UPDATE definitions SET body = %s WHERE digest = %s"
                connection.execute(statement, (edit(str(body)), digest))

        return edit_all


BLOCK = """
INSERT INTO episodes (episode_id, stop_reason, tools, labels, began, bytes, body)
VALUES ('blocked', 'finished', '{}', '{}', now(), 0, '')
"""
BLOCKED = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%keep_epi%'"


def test_what_is_kept_later_comes_behind_what_was_read(store_url, raw):
    """A batch that takes long is not passed by: a copy that is made meanwhile has it."""
    oldest_first = EpisodeFilter(oldest_first=True)
    slow = [Episode(episode_id=name, request="?") for name in ("slow", "blocked")]
    with (
        closing(PostgresStore(store_url)) as store,
        closing(open_store("memory:")) as target,
        ThreadPoolExecutor() as threads,
    ):
        in_the_way, looking = raw(store_url), raw(store_url)
        with in_the_way.transaction(force_rollback=True):
            in_the_way.execute(BLOCK.encode())
            keeping = threads.submit(store.append_many, slow)
            while not looking.execute(BLOCKED.encode()).rowcount:
                sleep(0.01)
            store.append(Episode(episode_id="quick", request="?"))
            assert [one.episode_id for one in store.select()] == ["quick"]
            copying = threads.submit(partial(copy_store, store, target))
            sleep(0.1)  # long enough for a copy that does not wait
        keeping.result()
        copying.result()
        ids = [[one.episode_id for one in kept.select(oldest_first)] for kept in (store, target)]
    assert ids == [["slow", "blocked", "quick"]] * 2


def tool(name: str, summary: str = "") -> ToolDefinition:
    """A tool with a few words."""
    return ToolDefinition(name=name, description=Description(summary=summary))


@pytest.fixture
def store(store_url):
    """The sample tools."""
    with closing(PostgresStore(store_url)) as store:
        change = LibraryChange(proposal_id="all", upserts=sample_library().definitions)
        store.commit(change, expected_version=0)
        yield store


@pytest.mark.parametrize(
    "summary", [" ".join(f"word{n}" for n in range(200_000)), "x" * 2_000_000, "\0 odd \u2400"]
)
def test_texts_that_no_index_takes_are_kept(store, summary):
    """A text that is too long for the index, or has a NUL in it, is kept whole all the same."""
    odd = tool("odd\0name", summary)
    store.commit(LibraryChange(proposal_id="2", upserts=(odd,)), expected_version=1)
    assert store.load()["odd\0name"].definition == odd
    assert list(store.check()) == []


def test_the_view_shows_the_current_tools(store, store_url, raw):
    """People can ask the view ``tools`` in SQL, down to each part of a definition."""
    store.commit(LibraryChange(proposal_id="2", removals=("bill_split",)), expected_version=1)
    rows = raw(store_url).execute(
        'SELECT tool_name FROM tools WHERE document @> \'{"description": {"tags": ["calendar"]}}\''
    )
    tagged = [t.name for t in store.load().definitions if "calendar" in t.description.tags]
    assert sorted(name for (name,) in rows) == sorted(tagged)
    (count,) = raw(store_url).execute("SELECT count(*) FROM tools").fetchone() or ()
    assert count == len(store.load())


ODD = st.text(st.sampled_from("\0\u24000#a\u0102"), max_size=12)


@settings(deadline=None)
@given(ODD)
def test_texts_come_back(text):
    """Any text without surrogates is stored without NUL and comes back as it was."""
    assert "\0" not in storable(text)
    assert restored(storable(text)) == text
    assert not is_cut(key(text))


def test_long_names_are_names(store_url):
    """Names and ids that no index takes are kept whole, found, changed and removed."""
    name, other = "x" * 5000, "x" * 4999 + "\u2400"
    tools = tuple(ToolDefinition(name=one) for one in (name, other))
    with closing(PostgresStore(store_url)) as store, closing(PostgresStore(store_url)) as replica:
        added = LibraryChange(proposal_id="p" * 5000, upserts=tools)
        assert store.commit(added, expected_version=0) == 1
        assert replica.load().definitions == tools
        assert store.commit(added, expected_version=0) == 1
        gone = LibraryChange(proposal_id="p" * 4999, removals=(name,))
        assert store.commit(gone, expected_version=1) == 2
        assert list(replica.load().tools) == [other]
        assert [one.change.removals for one in store.changes()] == [(), (name,)]
        assert [one.version for one in store.history(name)] == [1, 2]
        assert store.history(name)[0].proposal_id == "p" * 5000


DAMAGE = {
    "UPDATE definitions SET body = replace(body, 'text 1', 'text 7')": "versions",
    "UPDATE definitions SET body = '{' WHERE name = 'p_3'": "versions",
    "DELETE FROM revisions WHERE version = 2": "version 2",
    "DELETE FROM revisions WHERE version = 3; DELETE FROM versions WHERE version = 3": "version 4",
    "ALTER TABLE events DISABLE TRIGGER events_stay": "events",
    "ALTER TABLE events DISABLE TRIGGER events_stay; DELETE FROM events WHERE sequence = 1; "
    "ALTER TABLE events ENABLE TRIGGER events_stay": "event 1",
    "ALTER TABLE events DISABLE TRIGGER events_stay; UPDATE events SET body = "
    "replace(body, 'p-0', 'p-9'); ALTER TABLE events ENABLE TRIGGER events_stay": "event",
    "UPDATE episodes SET body = '{'": "episode e1",
    "UPDATE agentkit_migrations SET name = 'm0002_other' WHERE position = 2": "agentkit_migrations",
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_damage_is_found_where_it_is(store_url, raw, statement):
    """What was changed by hand is told with its place, and nothing else is changed by looking."""
    with closing(PostgresStore(store_url)) as store:
        last = None
        for number in range(2):
            change = with_event(batch("p", number), last, version=number + 1)
            store.commit(change, expected_version=number)
            last = change.events[-1]
        gone = ToolDefinition(name="gone")
        store.commit(LibraryChange(proposal_id="g", upserts=(gone,)), expected_version=2)
        store.commit(LibraryChange(proposal_id="h", removals=("gone",)), expected_version=3)
        call = ToolCall(call_id="1", name="p_0")
        turn = Turn(message=AssistantMessage(tool_calls=(call,)))
        store.append(Episode(episode_id="e1", request="hello", turns=(turn,), session_id="s"))
        assert check_store(store).is_sound
        raw(store_url).execute(statement.encode())
        faults = check_store(store).faults
        assert DAMAGE[statement] in " ".join(fault.place for fault in faults)
        assert check_store(store).faults == faults


def test_events_refuse_to_be_changed(store_url, raw):
    """Nobody changes, deletes or empties the chain by mistake."""
    with closing(PostgresStore(store_url)) as store:
        store.commit(with_event(batch("p", 0), None, version=1), expected_version=0)
        for statement in ("UPDATE events SET hash = ''", "DELETE FROM events", "TRUNCATE events"):
            with pytest.raises(psycopg.errors.RaiseException, match="only ever appended"):
                raw(store_url).execute(statement.encode())
        assert len(store.events()) == 1
