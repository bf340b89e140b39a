"""The tables that hold episodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import decode_episode, encode_episode
from agentkit.library.changes import begun_at, check_filter
from agentkit.library.store import EpisodeFilter
from agentkit.library.tables import paged_episodes
from agentkit_postgres.connection import Connections, Link, fetch
from agentkit_postgres.migrations import newer
from agentkit_postgres.steps import STEPS
from agentkit_postgres.texts import key, storable

_FIRST_PAGE, _LARGEST_PAGE = 64, 512
"""Episodes read at a time: nothing is held in the server while the caller looks at them."""

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

_NEWEST = "SELECT coalesce(max(sequence), 0) FROM episodes"

_ALL_ARRIVED = """
SELECT pg_advisory_xact_lock((1634430836::bigint << 32) | 'episodes'::regclass::oid::bigint)
"""
"""Numbers are given before transactions end: without it a lower one might become visible later, in
the middle of what was read, and who reads on from there would never see it."""


class EpisodeTables:
    """The methods of ``EpisodeStore`` but ``close``, and ``append_many``."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """See ``PostgresStore.append_many``."""
        batches = [
            _parameters(episodes[start : start + _AT_A_TIME])
            for start in range(0, len(episodes), _AT_A_TIME)
        ]
        if batches and "newer" in self._connections.run(partial(_keep, batches)):
            raise newer(self._connections)

    def get(self, episode_id: str) -> Episode | None:
        """See ``EpisodeStore.get``."""
        by_id = "SELECT body FROM episodes WHERE episode_id = %s"
        for (body,) in self._connections.execute(by_id, (key(episode_id),)):
            return decode_episode(body)
        return None

    def select(self, matching: EpisodeFilter) -> Iterator[Episode]:
        """See ``PostgresStore.select``."""
        check_filter(matching)
        look = _newest_when_all_arrived if matching.oldest_first else _newest
        newest = self._connections.run(look)

        def read(position: int, size: int) -> list[Any]:
            return self._connections.execute(
                *_page(matching, position=position, newest=newest, size=size)
            )

        return paged_episodes(
            matching, read, newest=newest, first_page=_FIRST_PAGE, largest_page=_LARGEST_PAGE
        )


def _keep(batches: Sequence[Sequence[Any]], link: Link) -> list[str]:
    """Keep all batches or none; what ``keep_episodes`` said of each."""
    with link.transaction() if len(batches) > 1 else nullcontext():
        return [str(outcome) for batch in batches for (outcome,) in fetch(link, _KEEP, batch)]


def _newest(link: Link) -> int:
    ((newest,),) = fetch(link, _NEWEST)
    return int(newest)


def _newest_when_all_arrived(link: Link) -> int:
    """The same, once those that are just being kept with a lower number are there."""
    with link.transaction():
        fetch(link, _ALL_ARRIVED)
        return _newest(link)


def _page(
    matching: EpisodeFilter, *, position: int, newest: int, size: int
) -> tuple[str, list[Any]]:
    """SQL and parameters of one page of episodes beyond ``position``."""
    source = "episodes"
    conditions = ["sequence <= %s", f"sequence {'>' if matching.oldest_first else '<'} %s"]
    parameters: list[Any] = [newest, position]
    if matching.session_id is not None:
        conditions.append("session_id = %s")
        parameters.append(key(matching.session_id))
    if matching.stop_reason is not None:
        conditions.append("stop_reason = %s")
        parameters.append(key(matching.stop_reason))
    if matching.tool_name is not None:
        source = "episode_tools JOIN episodes USING (sequence)"
        conditions.append("tool_name = %s")
        parameters.append(key(matching.tool_name))
    if matching.labels:
        conditions.append("labels @> %s::jsonb")
        parameters.append(_labels(matching.labels))
    order = "ASC" if matching.oldest_first else "DESC"
    sql = (
        f"SELECT sequence, body FROM {source} WHERE {' AND '.join(conditions)} "  # noqa: S608 - the literals above
        f"ORDER BY sequence {order} LIMIT %s"
    )
    return sql, [*parameters, size]


def _parameters(episodes: Sequence[Episode]) -> list[Any]:
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
