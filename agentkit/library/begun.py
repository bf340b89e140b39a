"""When an episode began, as every store reckons it that lets old ones go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agentkit.episodes import Episode

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def begun_at(episode: Episode, *, kept: datetime) -> datetime:
    """``Episode.started_at`` as a time; where it says none, the time at which it was kept.

    A time without a zone is UTC, as the field promises. What began after it was kept was told by a
    clock that is ahead, and counts as kept: else it would outlast all others, for years.

    Example:
        >>> episode = Episode(episode_id="e1", request="Hi", started_at="2026-03-02T10:00:00Z")
        >>> begun_at(episode, kept=datetime.now(UTC)).isoformat()
        '2026-03-02T10:00:00+00:00'
    """
    try:
        told = datetime.fromisoformat(episode.started_at)
        begun = told.replace(tzinfo=UTC) if told.tzinfo is None else told.astimezone(UTC)
        return min(begun, kept)
    except (ValueError, TypeError, OverflowError):  # empty, or no time at all
        return kept


def microseconds(time: datetime) -> int:
    """A time as whole microseconds since 1970, for a column that is compared and sorted.

    Example:
        >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
        1000000
    """
    return (time - _EPOCH) // _MICROSECOND
