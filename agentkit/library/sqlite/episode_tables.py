"""The tables of a SQLite file that hold episodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import decode_episode, encode_episode
from agentkit.library.changes import check_filter
from agentkit.library.episode_pages import paged_episodes
from agentkit.library.sqlite.connection import SQLiteConnection, storable
from agentkit.library.sqlite.extent_table import ExtentTable
from agentkit.library.store import EpisodeFilter

_PAGE = 64
"""Episodes read at a time: the lock is free while the caller looks at them."""

_INSERT = """
INSERT OR IGNORE INTO episodes (episode_id, session_id, stop_reason, body) VALUES (?,?,?,?)
"""

_NEWEST = "SELECT coalesce(max(sequence), 0) FROM episodes"

_ADDED = "SELECT sequence, episode_id FROM episodes WHERE sequence > ?"

_HAS_LABEL = """
CASE WHEN json_valid(body) THEN EXISTS (
    SELECT 1 FROM json_each(body, '$.metadata')
    WHERE key = json_extract(?, '$') AND atom = json_extract(?, '$')
) ELSE TRUE END
"""
"""Python writes and reads NaN, where SQLite says "malformed JSON" and ends the query. What it can
not read is looked at when it has been decoded."""


class EpisodeTables:
    """The methods of ``EpisodeStore`` over a connection, but ``close``.

    Args:
        connection: The file.
        extents: Notes how big and how old each episode is.
    """

    def __init__(self, connection: SQLiteConnection, extents: ExtentTable) -> None:
        self._connection = connection
        self._extents = extents

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """See ``SQLiteStore.append_many``."""
        rows: dict[str, Episode] = {}
        for episode in episodes:
            rows.setdefault(storable(episode.episode_id), episode)
        bodies = {
            key: encode_episode(one) for key, one in rows.items()
        }  # before the file is locked
        with self._connection.transaction():
            ((newest,),) = self._connection.execute(_NEWEST)
            self._connection.execute_many(
                _INSERT, [_row(key, rows[key], body) for key, body in bodies.items()]
            )
            added = self._connection.execute(_ADDED, (newest,))
            called = [(name, sequence) for sequence, key in added for name in _called(rows[key])]
            if called:
                self._connection.execute_many("INSERT INTO episode_tools VALUES (?,?)", called)
            self._extents.add((sequence, rows[key], bodies[key]) for sequence, key in added)

    def get(self, episode_id: str) -> Episode | None:
        """See ``EpisodeStore.get``."""
        by_id = "SELECT body FROM episodes WHERE episode_id = ?"
        for (body,) in self._connection.execute(by_id, (storable(episode_id),)):
            return decode_episode(body)
        return None

    def select(self, matching: EpisodeFilter) -> Iterator[Episode]:
        """See ``SQLiteStore.select``."""
        check_filter(matching)
        ((newest,),) = self._connection.execute(_NEWEST)

        def read(position: int, size: int) -> list[Any]:
            return self._connection.execute(
                *_page(matching, position=position, newest=newest, size=size)
            )

        return paged_episodes(matching, read, newest=newest, first_page=_PAGE, largest_page=_PAGE)


def _row(key: str, episode: Episode, body: str) -> tuple[object, ...]:
    session = None if episode.session_id is None else storable(episode.session_id)
    return (key, session, episode.stop_reason, body)


def _called(episode: Episode) -> Sequence[str]:
    """The tools that an episode called, each once."""
    return tuple(dict.fromkeys(storable(call.name) for call in episode.calls))


def _page(
    matching: EpisodeFilter, *, position: int, newest: int, size: int
) -> tuple[str, list[object]]:
    """SQL and parameters of one page of episodes beyond ``position``."""
    source = "episodes"
    # Newest first one bound is enough: given two, SQLite goes down from the wrong one, and each
    # page walks over all those before it.
    conditions = ["sequence <= ?", "sequence > ?"] if matching.oldest_first else ["sequence < ?"]
    parameters: list[object] = [newest, position] if matching.oldest_first else [position]
    if matching.session_id is not None:
        conditions.append("session_id = ?")
        parameters.append(storable(matching.session_id))
    if matching.stop_reason is not None:
        conditions.append("stop_reason = ?")
        parameters.append(storable(matching.stop_reason))
    if matching.tool_name is not None:
        source = "episode_tools JOIN episodes USING (sequence)"
        conditions.append("tool_name = ?")
        parameters.append(storable(matching.tool_name))
    for label in matching.labels.items():
        # As JSON, in which half a surrogate pair is plain ASCII; SQLite reads both sides alike.
        conditions.append(_HAS_LABEL)
        parameters += map(json.dumps, label)
    order = "ASC" if matching.oldest_first else "DESC"
    sql = (
        f"SELECT sequence, body FROM {source} WHERE {' AND '.join(conditions)} "  # noqa: S608 - the literals above
        f"ORDER BY sequence {order} LIMIT ?"
    )
    return sql, [*parameters, size]
