"""``PostgresStore``: a library and its episodes in a database that a fleet shares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agentkit.episodes import Episode
from agentkit.episodes.files import encode_episode
from agentkit.errors import StaleChainError, StaleVersionError, StoreError, ToolNotFoundError
from agentkit.library.changes import begun_at, check_change, now, stored_definition
from agentkit.library.library import nearest_names
from agentkit.library.sql_store import SQLStore
from agentkit.library.store import EpisodeFilter, EpisodeVolume, LibraryChange, StoreFault
from agentkit_postgres.address import Address
from agentkit_postgres.connection import Connections, Link, fetch
from agentkit_postgres.encoding import (
    EncodedTool,
    encode_event,
    encode_tool,
    is_cut,
    key,
    restored,
    storable,
)
from agentkit_postgres.migrations import check_schema, make_ready, newer
from agentkit_postgres.steps import STEPS

_LOAD = """
SELECT r.tool_name, r.digest, r.origin, r.since, d.body
FROM revisions AS r LEFT JOIN definitions AS d ON d.digest = r.digest
WHERE r.version > %s AND r.version <= %s AND (r.replaced_in IS NULL OR r.replaced_in > %s)
ORDER BY r.since, r.place
"""
"""What differs between two versions: each tool as the later one has it, no digest if removed."""

_WHOLE_NAME = """
SELECT r.digest, r.origin, d.body
FROM revisions AS r JOIN definitions AS d ON d.digest = r.digest
WHERE r.tool_name = %s LIMIT 1
"""

_COMMIT = """
SELECT outcome, number, missing FROM commit_change(
    %s::integer, %s::bigint, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text,
    %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[],
    %b::text[], %b::text[], %s::bigint[], %b::text[], %b::text[], %s::text)
"""

_NEVER = -1
"""A version that no library is at, in the place of one that PostgreSQL cannot compare."""


_AT_A_TIME = 500
"""Episodes of one statement; several are one transaction."""

_KEEP = """
WITH turn AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(
        (1634430836::bigint << 32) | 'episodes'::regclass::oid::bigint)
)
SELECT keep_episodes(%s::integer, %b::text[], %b::text[], %b::text[], %b::text[], %b::text[],
                     %s::timestamptz[], %b::text[])
FROM turn
"""
"""Any number of programs keep episodes at a time; the lock is for who reads the oldest first."""

_ALL_ARRIVED = """
SELECT pg_advisory_xact_lock((1634430836::bigint << 32) | 'episodes'::regclass::oid::bigint)
"""
"""Numbers are given before transactions end: without it a lower one might become visible later, in
the middle of what was read, and who reads on from there would never see it."""


_DELETE = """
WITH gone AS (
    DELETE FROM episodes WHERE sequence = ANY (ARRAY(
        SELECT sequence FROM episodes WHERE (began, sequence) <= (%s, %s)
        ORDER BY began, sequence LIMIT %s
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING sequence, tools, bytes
), unlisted AS (
    DELETE FROM episode_tools AS t USING gone, unnest(gone.tools) AS tool
    WHERE t.tool_name = tool AND t.sequence = gone.sequence
)
SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone
"""
"""Two programs that prune at a time delete different ones."""


class PostgresStore(SQLStore):
    """All parts of a store in one schema of a PostgreSQL database.

    Any number of programs and threads may use it at a time. A committed version, and an episode
    that was taken, survive a crash of this program, of the server and of its machine.

    A connection that breaks is replaced, and what was sent is sent once more: a commit is known by
    its ``proposal_id`` and its events, an episode by its id.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``, with what libpq takes as
            parameters, and of ours ``schema``, ``pool_size``, ``timeout`` (seconds to wait for a
            connection and for other writers) and ``statement_timeout`` (seconds a statement).

    Raises:
        UsageError: This is no such URL.
        StoreUnavailableError: The server cannot be reached now.
        StoreError: It refuses this user, has no such database, or cannot hold a library.
        StoreFormatError: The schema belongs to another program or to a newer agentkit.
    """

    def __init__(self, url: str) -> None:
        self._connections = Connections(Address.parse(url))
        try:
            make_ready(self._connections)
        except BaseException:
            self._connections.close()
            raise
        shown = self._connections.address.shown
        super().__init__(shown)

    def __repr__(self) -> str:
        address = self._connections.address
        return f"PostgresStore({address.shown!r}, schema={address.schema!r})"

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change``; see ``ToolStore.commit``. One question to the server, one flush."""
        check_change(change)
        tools = [encode_tool(tool) for tool in change.upserts]
        parameters = _parameters(change, tools, expected_version)
        ((outcome, number, missing),) = self._connections.execute(_COMMIT, parameters)
        match outcome:
            case "made" | "known" | "held":
                return int(number)
            case "stale":
                raise StaleVersionError(expected=expected_version, actual=number)
            case "stale chain":
                raise StaleChainError(expected=change.events[0].sequence - 1, actual=number)
            case "missing":
                known, name = self.load(), restored(missing)
                nearest = nearest_names(name, known.tools)
                raise ToolNotFoundError(name, nearest=nearest, version=known.version)
            case "newer":
                raise newer(self._connections)
            case _:
                raise StoreError(f"{self._connections.address.shown} answered {outcome!r}")

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several episodes in this order, all of them or none; known ids are ignored."""
        batches = [
            _episode_parameters(episodes[start : start + _AT_A_TIME])
            for start in range(0, len(episodes), _AT_A_TIME)
        ]
        if batches and "newer" in self._connections.run(partial(_keep, batches)):
            raise newer(self._connections)

    def check(self) -> Iterator[StoreFault]:
        """Whether the schema is as it was made; see ``Checkable.check``."""
        self._connections.check_usable()
        return check_schema(self._connections)

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        self._connections.close()

    # What ``SQLStore`` asks for.

    def _rows(self, sql: str, parameters: Sequence[object] = ()) -> Sequence[Any]:
        return self._connections.execute(sql.replace("?", "%s"), parameters)

    def _rows_between(self, after: int, version: int) -> Sequence[Any]:
        return self._connections.execute(_LOAD, (after, version, version))

    def _newest_episode(self, matching: EpisodeFilter) -> int:
        if matching.oldest_first:
            return self._connections.run(_newest_when_all_arrived)
        return super()._newest_episode(matching)

    def _key(self, text: str) -> str:
        return key(text)

    def _restored(self, text: str) -> str:
        return restored(text)

    def _tool_name(self, stored: str) -> str:
        if not is_cut(stored):
            return restored(stored)
        (kept,) = self._connections.execute(_WHOLE_NAME, (stored,))
        return stored_definition(*kept, place=self._place).name

    def _having_labels(self, labels: Mapping[str, str]) -> tuple[list[str], list[object]]:
        return ["labels @> CAST(? AS jsonb)"], [_labels(labels)]

    def _delete_up_to(self, begun: Any, sequence: int) -> EpisodeVolume:
        parameters = (begun, sequence, self.pruned_at_a_time)
        ((count, size),) = self._connections.execute(_DELETE, parameters)
        return EpisodeVolume(count=count, bytes=size)


def _parameters(
    change: LibraryChange, tools: Sequence[EncodedTool], expected_version: int
) -> list[Any]:
    """What ``commit_change`` takes, worked out before anything is locked."""
    events = change.events
    return [
        len(STEPS),
        expected_version if 0 <= expected_version < 2**63 else _NEVER,
        key(change.proposal_id),
        *map(storable, (change.proposal_id, change.author, change.reason)),
        json.dumps(change.evidence),
        change.created_at or now(),
        [tool.name for tool in tools],
        [tool.digest for tool in tools],
        [tool.body for tool in tools],
        [tool.origin for tool in tools],
        [tool.document for tool in tools],
        [tool.words for tool in tools],
        [tool.summary for tool in tools],
        [tool.texts for tool in tools],
        [key(name) for name in change.removals],
        [event.sequence for event in events],
        [event.hash for event in events],
        [encode_event(event) for event in events],
        events[0].previous if events else "",
    ]


def _keep(batches: Sequence[Sequence[Any]], link: Link) -> list[str]:
    """Keep all batches or none; what ``keep_episodes`` said of each."""
    with link.transaction() if len(batches) > 1 else nullcontext():
        return [str(outcome) for batch in batches for (outcome,) in fetch(link, _KEEP, batch)]


def _newest_when_all_arrived(link: Link) -> int:
    """The last place, once episodes that are just being kept with a lower one are there."""
    with link.transaction():
        fetch(link, _ALL_ARRIVED)
        ((newest,),) = fetch(link, "SELECT coalesce(max(sequence), 0) FROM episodes")
        return int(newest)


def _episode_parameters(episodes: Sequence[Episode]) -> list[Any]:
    """What ``keep_episodes`` takes: a column a list."""
    kept = datetime.now(UTC)
    sessions = [one.session_id for one in episodes]
    return [
        len(STEPS),
        [key(one.episode_id) for one in episodes],
        [None if session is None else key(session) for session in sessions],
        [key(one.stop_reason) for one in episodes],
        [json.dumps(list(dict.fromkeys(key(call.name) for call in one.calls))) for one in episodes],
        [_labels(one.metadata) for one in episodes],
        [begun_at(one, kept=kept) for one in episodes],
        [encode_episode(one) for one in episodes],
    ]


def _labels(labels: Any) -> str:
    """Labels as JSON that jsonb takes; what a query finds is looked at again when decoded."""
    stored = {storable(name): _label(value) for name, value in labels.items()}
    return json.dumps(stored, ensure_ascii=False)


def _label(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else None
