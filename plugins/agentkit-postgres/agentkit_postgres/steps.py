"""The shape of a PostgreSQL store, as named steps that are only ever added to.

A step that was released is never edited: databases out there have it behind them. They run with
the schema as the search path, and functions keep that path.
"""

from __future__ import annotations

from collections.abc import Mapping

M0001_TOOL_TABLES = """
CREATE TABLE definitions (
    digest text PRIMARY KEY,  -- ToolDefinition.digest
    name   text NOT NULL,
    body   text NOT NULL      -- JSON to the letter, without the origin; jsonb would round numbers
);
CREATE TABLE versions (
    version      bigint PRIMARY KEY,
    proposal_key text NOT NULL UNIQUE,  -- the id, cut when it is too long for an index
    proposal_id  text NOT NULL,
    author       text NOT NULL,
    reason       text NOT NULL,
    evidence     text NOT NULL,  -- JSON array of episode ids
    created_at   text NOT NULL
);
CREATE TABLE revisions (
    version     bigint NOT NULL REFERENCES versions,
    tool_name   text NOT NULL,
    digest      text REFERENCES definitions,  -- NULL: removed
    origin      text,             -- JSON; where this revision came from
    since       bigint NOT NULL,  -- version in which the tool was added: its place in the
    place       bigint NOT NULL,  -- library's order, with its place among that version's
    replaced_in bigint,           -- version of this tool's next revision; NULL: current
    PRIMARY KEY (tool_name, version)
);
CREATE INDEX revisions_by_version ON revisions (version);
CREATE INDEX revisions_by_digest ON revisions (digest);
CREATE UNIQUE INDEX revisions_current ON revisions (tool_name) WHERE replaced_in IS NULL;
CREATE TABLE documents (
    digest   text PRIMARY KEY REFERENCES definitions,
    document jsonb NOT NULL,    -- the definition for queries; body is the definition itself
    words    tsvector NOT NULL  -- name (A), summary and tags (B), all other texts (C)
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
"""

M0002_EVENT_TABLE = """
CREATE TABLE events (
    sequence bigint PRIMARY KEY,
    hash     text NOT NULL,
    body     text NOT NULL  -- JSON, see LibraryEvent.to_json
);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are only ever appended';
END $$;
CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""

M0003_EPISODE_TABLES = """
CREATE TABLE episodes (
    sequence    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    episode_id  text NOT NULL UNIQUE,
    session_id  text,
    stop_reason text NOT NULL,
    tools       text[] NOT NULL,  -- names that it called, each once
    labels      jsonb NOT NULL,   -- its metadata
    began       timestamptz NOT NULL,
    bytes       bigint NOT NULL,  -- of the body
    body        text NOT NULL     -- JSON, see Episode.to_json
);
CREATE INDEX episodes_by_session ON episodes (session_id, sequence);
CREATE INDEX episodes_by_stop_reason ON episodes (stop_reason, sequence);
CREATE INDEX episodes_by_age ON episodes (began, sequence);
CREATE INDEX episodes_by_label ON episodes USING gin (labels jsonb_path_ops);
CREATE TABLE episode_tools (
    tool_name text NOT NULL,
    sequence  bigint NOT NULL,
    PRIMARY KEY (tool_name, sequence)
);
CREATE FUNCTION keep_episodes(
    known_steps integer, ids text[], sessions text[], reasons text[], called text[],
    metadata text[], begun timestamptz[], bodies text[]
) RETURNS text LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (SELECT count(*) FROM agentkit_migrations) > known_steps THEN
        RETURN 'newer';
    END IF;
    WITH kept AS (
        INSERT INTO episodes
            (episode_id, session_id, stop_reason, tools, labels, began, bytes, body)
        SELECT id, session, reason, ARRAY(SELECT jsonb_array_elements_text(names::jsonb)),
               label::jsonb, coalesce(start, now()), octet_length(text), text
        FROM unnest(ids, sessions, reasons, called, metadata, begun, bodies) WITH ORDINALITY
            AS given(id, session, reason, names, label, start, text, place)
        ORDER BY place
        ON CONFLICT (episode_id) DO NOTHING
        RETURNING sequence, tools
    )
    INSERT INTO episode_tools SELECT tool, sequence FROM kept, unnest(tools) AS tool;
    RETURN 'kept';
END $$;
"""

M0004_COMMIT = """
CREATE FUNCTION commit_change(
    known_steps integer, expected bigint, new_key text, new_id text, new_author text,
    new_reason text, new_evidence text, new_created_at text,
    names text[], digests text[], bodies text[], origins text[],
    documents_given text[], words text[], summaries text[], texts text[],
    removed text[],
    places bigint[], hashes text[], told text[], chained_to text,
    OUT outcome text, OUT number bigint, OUT missing text
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    actual bigint;
    last_sequence bigint;
    last_hash text;
    makes_version boolean := cardinality(names) + cardinality(removed) > 0;
BEGIN
    -- One writer at a time in this schema; each statement below sees what the one before committed.
    PERFORM pg_advisory_xact_lock((1634430836::bigint << 32) | 'versions'::regclass::oid::bigint);
    IF (SELECT count(*) FROM agentkit_migrations) > known_steps THEN
        outcome := 'newer';
        RETURN;
    END IF;
    SELECT version INTO number FROM versions WHERE proposal_key = new_key;
    IF FOUND THEN
        outcome := 'known';
        RETURN;
    END IF;
    SELECT coalesce(max(version), 0) INTO actual FROM versions;
    number := actual;
    IF NOT makes_version AND cardinality(places) = (
        SELECT count(*) FROM events AS e
        JOIN unnest(places, hashes) AS given(place, hash)
            ON e.sequence = place AND e.hash = given.hash
    ) THEN
        outcome := 'held';
        RETURN;
    END IF;
    IF actual <> expected THEN
        outcome := 'stale';
        RETURN;
    END IF;
    IF cardinality(places) > 0 THEN
        SELECT sequence, hash INTO last_sequence, last_hash
        FROM events ORDER BY sequence DESC LIMIT 1;
        IF coalesce(last_sequence, 0) + 1 <> places[1] OR coalesce(last_hash, '') <> chained_to THEN
            outcome := 'stale chain';
            number := coalesce(last_sequence, 0);
            RETURN;
        END IF;
    END IF;
    IF cardinality(removed) > 0 THEN
        SELECT name INTO missing FROM unnest(removed) WITH ORDINALITY AS given(name, nth)
        WHERE NOT EXISTS (
            SELECT FROM revisions
            WHERE tool_name = name AND replaced_in IS NULL AND digest IS NOT NULL
        ) ORDER BY nth LIMIT 1;
        IF FOUND THEN
            outcome := 'missing';
            RETURN;
        END IF;
    END IF;
    IF makes_version THEN
        number := actual + 1;
        INSERT INTO versions
        VALUES (number, new_key, new_id, new_author, new_reason, new_evidence, new_created_at);
        WITH added AS (
            INSERT INTO definitions
            SELECT given.digest, given.name, given.body
            FROM unnest(digests, names, bodies) AS given(digest, name, body)
            ON CONFLICT DO NOTHING
            RETURNING digest
        )
        INSERT INTO documents
        SELECT digest, coalesce(document, body)::jsonb, words_of(word, summary, text)
        FROM unnest(digests, bodies, documents_given, words, summaries, texts)
            AS given(digest, body, document, word, summary, text)
        JOIN added USING (digest);
        WITH old AS (
            UPDATE revisions SET replaced_in = number
            WHERE replaced_in IS NULL AND tool_name = ANY (names || removed)
            RETURNING tool_name, digest, since, place
        )
        INSERT INTO revisions (version, tool_name, digest, origin, since, place)
        SELECT number, given.name, given.digest, given.origin, coalesce(old.since, number),
               coalesce(old.place, nth - 1)
        FROM unnest(names, digests, origins) WITH ORDINALITY AS given(name, digest, origin, nth)
        LEFT JOIN old ON old.tool_name = given.name AND old.digest IS NOT NULL
        UNION ALL
        SELECT number, old.tool_name, NULL, NULL, old.since, old.place
        FROM old WHERE old.tool_name = ANY (removed);
    END IF;
    INSERT INTO events
    SELECT place, hash, body FROM unnest(places, hashes, told) AS given(place, hash, body);
    PERFORM pg_notify(current_schema(), number::text);  -- a hint, delivered when this commits
    outcome := 'made';
END $$;
"""

M0005_DERIVED_VALUES = """
CREATE TABLE derived (
    key        text PRIMARY KEY,
    generation bigint NOT NULL,  -- the last time that somebody wrote and named it
    checksum   bytea NOT NULL,   -- BLAKE2b of the body, 16 bytes
    body       bytea NOT NULL
);
ALTER TABLE derived ALTER COLUMN body SET STORAGE EXTERNAL;  -- vectors do not shrink
"""

STEPS: Mapping[str, str] = {
    "m0001_tool_tables": M0001_TOOL_TABLES,
    "m0002_event_table": M0002_EVENT_TABLE,
    "m0003_episode_tables": M0003_EPISODE_TABLES,
    "m0004_commit": M0004_COMMIT,
    "m0005_derived_values": M0005_DERIVED_VALUES,
}
"""In order. Append to it; never edit, reorder or remove."""
