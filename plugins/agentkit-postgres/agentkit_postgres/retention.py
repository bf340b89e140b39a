"""Letting old episodes go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeAlias

from agentkit.library.capabilities import EpisodeVolume, Retention
from agentkit_postgres.connection import Connections

_AT_A_TIME = 1_000
"""Episodes deleted in one transaction, so that none is long."""

_VOLUME = "SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM episodes"

_UP_TO = "(began, sequence) <= (%s, %s)"

_TOO_OLD = """
SELECT began, sequence FROM episodes WHERE began < %s ORDER BY began DESC, sequence DESC LIMIT 1
"""

_BEYOND_COUNT = """
SELECT began, sequence FROM episodes ORDER BY began DESC, sequence DESC LIMIT 1 OFFSET %s
"""

_BEYOND_BYTES = """
SELECT began, sequence FROM (
    SELECT began, sequence, sum(bytes) OVER (ORDER BY began DESC, sequence DESC) AS together
    FROM episodes
) AS younger WHERE together > %s ORDER BY began DESC, sequence DESC LIMIT 1
"""

_DELETE = f"""
WITH gone AS (
    DELETE FROM episodes WHERE sequence = ANY (ARRAY(
        SELECT sequence FROM episodes WHERE {_UP_TO} ORDER BY began, sequence LIMIT {_AT_A_TIME}
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING sequence, tools, bytes
), unlisted AS (
    DELETE FROM episode_tools AS t USING gone, unnest(gone.tools) AS tool
    WHERE t.tool_name = tool AND t.sequence = gone.sequence
)
SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone
"""  # noqa: S608 - constants above
"""Two programs that prune at a time delete different ones."""

_Place: TypeAlias = tuple[datetime, int]


def volume(connections: Connections) -> EpisodeVolume:
    """See ``Pruning.volume``."""
    ((count, size),) = connections.execute(_VOLUME)
    return EpisodeVolume(count=count, bytes=size)


def prunable(connections: Connections, retention: Retention) -> EpisodeVolume:
    """See ``PruningPreview.prunable``."""
    last = _last_to_go(connections, retention)
    if last is None:
        return EpisodeVolume(count=0, bytes=0)
    ((count, size),) = connections.execute(f"{_VOLUME} WHERE {_UP_TO}", last)
    return EpisodeVolume(count=count, bytes=size)


def prune(connections: Connections, retention: Retention) -> EpisodeVolume:
    """See ``Pruning.prune``; which one is the last to go is settled before any goes."""
    last = _last_to_go(connections, retention)
    count = size = 0
    while last is not None:
        ((some, bytes_),) = connections.execute(_DELETE, last)
        count, size = count + some, size + bytes_
        if some < _AT_A_TIME:
            break
    return EpisodeVolume(count=count, bytes=size)


def _last_to_go(connections: Connections, retention: Retention) -> _Place | None:
    """The youngest episode that has to go; None when all may stay."""
    found: list[_Place] = []
    for sql, bound in (
        (_TOO_OLD, _oldest_to_stay(retention)),
        (_BEYOND_COUNT, None if retention.max_count is None else min(retention.max_count, 2**62)),
        (_BEYOND_BYTES, retention.max_bytes),
    ):
        if bound is not None:
            rows = connections.execute(sql, (bound,))
            found += [(began, sequence) for began, sequence in rows]
    return max(found, default=None)


def _oldest_to_stay(retention: Retention) -> datetime | None:
    if retention.max_age is None:
        return None
    try:
        return datetime.now(UTC) - retention.max_age
    except OverflowError:  # older than the calendar
        return None
