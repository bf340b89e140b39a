"""Looking for damage in the tables, and giving back the room that deleted rows took."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from psycopg import sql

from agentkit.episodes.jsonl import decode_episode
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library.capabilities import Compacted, StoreFault
from agentkit.library.events import LibraryEvent
from agentkit.library.sql_store import row_fault
from agentkit.tools.definition import ToolDefinition
from agentkit_postgres.connection import Connections, Link, fetch
from agentkit_postgres.encoding import encode_tool
from agentkit_postgres.migrations import LEDGER
from agentkit_postgres.steps import STEPS
from agentkit_postgres.texts import key

_PAGE = 200
_MOST_FAULTS = 100
"""Of one kind that are told of; a database with more is not mended one by one."""

_SAVE = "restore a backup"

_DEFINITIONS = """
SELECT digest, name, body FROM definitions WHERE digest > %s ORDER BY digest LIMIT %s
"""
_EVENTS = "SELECT sequence, hash, body FROM events WHERE sequence > %s ORDER BY sequence LIMIT %s"
_EPISODES = """
SELECT sequence, episode_id, session_id, stop_reason, bytes, tools,
       ARRAY(SELECT tool_name FROM unnest(tools) WITH ORDINALITY AS t(name, nth)
             JOIN episode_tools AS l ON l.tool_name = t.name AND l.sequence = e.sequence
             ORDER BY nth), body
FROM episodes AS e WHERE sequence > %s ORDER BY sequence LIMIT %s
"""

_ROWS = {
    "SELECT n FROM (SELECT version, row_number() OVER (ORDER BY version) AS n FROM versions) AS v "
    "WHERE version <> n ORDER BY n LIMIT 1": (
        "versions",
        "version {} is missing: somebody took it away",
    ),
    "SELECT version FROM versions AS v WHERE NOT EXISTS (SELECT FROM revisions AS r "
    "WHERE r.version = v.version) ORDER BY version": (
        "versions",
        "version {} changed no tool: somebody took its revisions away",
    ),
    "SELECT version FROM revisions AS r WHERE NOT EXISTS (SELECT FROM versions AS v "
    "WHERE v.version = r.version)": (
        "revisions",
        "revisions belong to version {}, which is not there: somebody took it away",
    ),
    "SELECT digest FROM revisions AS r WHERE digest IS NOT NULL AND NOT EXISTS "
    "(SELECT FROM definitions AS d WHERE d.digest = r.digest)": (
        "revisions",
        "a revision names the definition {}, which is not there: somebody took it away",
    ),
    "SELECT digest FROM definitions AS d WHERE NOT EXISTS (SELECT FROM revisions AS r "
    "WHERE r.digest = d.digest) ORDER BY digest": (
        "definitions",
        "the definition {} belongs to no version: somebody took versions or revisions away",
    ),
    "SELECT digest FROM definitions AS d WHERE NOT EXISTS (SELECT FROM documents AS o "
    "WHERE o.digest = d.digest)": (
        "documents",
        "the definition {} can not be searched: somebody took its document away",
    ),
    "SELECT version || ' of ' || tool_name FROM (SELECT version, tool_name, replaced_in, "
    "lead(version) OVER (PARTITION BY tool_name ORDER BY version) AS next FROM revisions) AS r "
    "WHERE replaced_in IS DISTINCT FROM next ORDER BY version": (
        "revisions",
        "revision {} names another as the next one than the one that follows it",
    ),
    "SELECT DISTINCT l.sequence FROM episode_tools AS l LEFT JOIN episodes AS e USING (sequence) "
    "WHERE e.sequence IS NULL OR l.tool_name <> ALL (e.tools)": (
        "episode_tools",
        "it lists a tool for episode {}, which is not there or did not call it",
    ),
    "SELECT 'events_stay' WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'events_stay' "
    "AND tgrelid = 'events'::regclass AND tgenabled <> 'D')": (
        "events",
        "the trigger {}, which keeps events from being changed, was taken away or disabled",
    ),
}
"""Queries for rows that should not be, with the table and words for each.

NOT EXISTS and not NOT IN, which compares each row with each as soon as one side outgrows work_mem.
"""


def check_tables(connections: Connections) -> Iterator[StoreFault]:
    """See ``Checkable.check``."""
    for look in (_ledger, _odd_rows, _definitions, _events, _episodes):
        try:
            yield from look(connections)
        except StoreUnavailableError:
            raise
        except StoreError as error:  # the rest of this part is out of reach, other parts may not be
            yield StoreFault(place=look.__name__.strip("_"), message=str(error))


def _ledger(connections: Connections) -> Iterator[StoreFault]:
    rows = connections.execute(f"SELECT position, name FROM {LEDGER} ORDER BY position")  # noqa: S608 - a constant
    expected = list(enumerate(STEPS, start=1))
    if rows != expected:
        message = f"the schema went through {rows}, and not through {expected}; {_SAVE}"
        yield StoreFault(place=LEDGER, message=message)


def _odd_rows(connections: Connections) -> Iterator[StoreFault]:
    for query, (place, words) in _ROWS.items():
        for (value,) in connections.execute(query)[:_MOST_FAULTS]:
            yield StoreFault(place=place, message=f"{words.format(value)}; {_SAVE}")


def _definitions(connections: Connections) -> Iterator[StoreFault]:
    for digest, name, body in _pages(connections, _DEFINITIONS, first=""):
        message = row_fault(partial(_digest, body), (name, digest), advice=_SAVE)
        if message:
            yield StoreFault(place=f"definition {digest[:12]} ({name})", message=message)


def _digest(body: str) -> tuple[str, str]:
    tool = encode_tool(ToolDefinition.from_json(json.loads(body)))
    return tool.name, tool.digest


def _events(connections: Connections) -> Iterator[StoreFault]:
    last = (0, "")
    for sequence, hash_, body in _pages(connections, _EVENTS, first=0):
        message = row_fault(partial(_event, body), (sequence, hash_, *last), advice=_SAVE)
        if message:
            yield StoreFault(place=f"event {sequence}", message=message)
        last = (sequence, hash_)


def _event(body: str) -> tuple[int, str, int, str]:
    """Its place and hash, and those of the event that it follows."""
    event = LibraryEvent.from_json(json.loads(body))
    return event.sequence, event.hash, event.sequence - 1, event.previous


def _episodes(connections: Connections) -> Iterator[StoreFault]:
    for sequence, *kept, body in _pages(connections, _EPISODES, first=0):
        message = row_fault(partial(_keys, body), tuple(kept), advice=_SAVE)
        if message:
            yield StoreFault(place=f"episode {kept[0]!r} (row {sequence})", message=message)


def _keys(body: str) -> tuple[str, str | None, str, int, list[str], list[str]]:
    """What the other columns hold of an episode."""
    episode = decode_episode(body)
    session = None if episode.session_id is None else key(episode.session_id)
    tools = list(dict.fromkeys(key(call.name) for call in episode.calls))
    size = len(body.encode())
    return key(episode.episode_id), session, key(episode.stop_reason), size, tools, tools


def _pages(connections: Connections, sql: str, *, first: int | str) -> Iterator[Any]:
    """The rows of a query by what is in their first column, some at a time."""
    last = first
    while rows := connections.execute(sql, (last, _PAGE)):
        yield from rows
        last = rows[-1][0]


_TABLES = """
SELECT relname, pg_has_role(relowner, 'MEMBER') FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname
"""

_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""

_UNUSED = "DELETE FROM derived WHERE generation < (SELECT max(generation) FROM derived)"
"""What the last one that worked something out did not name is of an older library."""


def compact_tables(connections: Connections) -> Compacted:
    """See ``PostgresStore.compact``."""
    with connections.own() as link:
        before = _size(link)
        tables: dict[str, bool] = dict(fetch(link, _TABLES))
        if not all(tables.values()):  # PostgreSQL would pass over them with a warning
            raise StoreError(
                f"the user of {connections.address.shown} does not own the tables of the schema "
                f"{connections.address.schema!r}, which compacting takes. Nothing was changed; "
                "open the store as the user who made it"
            )
        fetch(link, _UNUSED)
        for table in tables:
            link.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))
        return Compacted(bytes_before=before, bytes_after=_size(link))


def _size(link: Link) -> int:
    ((size,),) = fetch(link, _SIZE)
    return int(size)
