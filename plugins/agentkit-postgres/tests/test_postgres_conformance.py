"""``postgresql://`` passes the shipped suites."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from support.postgres_server import empty_store_url
from support.store_conformance import ServedStoreConformance

from agentkit import open_store
from agentkit.testing.conformance.formats import EditDefinitions
from agentkit_postgres.address import Address

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
    def store_url(self, server_url: str) -> Iterator[str]:
        with empty_store_url(server_url) as url:
            yield url

    @pytest.fixture
    def oldest_store_url(self, store_url: str, raw: Raw) -> str:
        connection = raw(store_url)
        connection.execute(f"CREATE SCHEMA {Address.parse(store_url).schema}".encode())
        connection.execute(OLDEST_SHAPE.replace("DIGEST", PING).encode())
        return store_url

    @pytest.fixture
    def newer_store_url(self, store_url: str, raw: Raw) -> str:
        open_store(store_url).close()
        raw(store_url).execute(
            "INSERT INTO agentkit_migrations VALUES (9999, 'm9999_new', now(), '99.0')"
        )
        return store_url

    @pytest.fixture
    def raw_contents(self, raw: Raw) -> Callable[[str], object]:
        def read(url: str) -> object:
            connection = raw(url)
            tables = connection.execute(
                "SELECT relname, relkind FROM pg_class WHERE relnamespace = "
                "current_schema()::regnamespace ORDER BY relname"
            ).fetchall()
            return tables, connection.execute("SELECT * FROM agentkit_migrations").fetchall()

        return read

    @pytest.fixture
    def edit_definitions(self, raw: Raw) -> EditDefinitions:
        def edit_all(url: str, edit: Callable[[str], str]) -> None:
            connection = raw(url)
            for digest, body in connection.execute("SELECT digest, body FROM definitions"):
                statement = "UPDATE definitions SET body = %s WHERE digest = %s"
                connection.execute(statement, (edit(str(body)), digest))

        return edit_all
