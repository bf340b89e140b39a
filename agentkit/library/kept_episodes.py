"""Episodes in memory, with what retention asks of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import encode_episode
from agentkit.errors import EpisodeFormatError
from agentkit.library.abilities import EpisodeVolume, Retention
from agentkit.library.begun import begun_at


@dataclass(frozen=True, kw_only=True)
class KeptEpisode:
    """An episode, and when it was kept.

    Attributes:
        episode: The episode.
        at: When the store got it.
    """

    episode: Episode
    at: datetime

    @cached_property
    def begun(self) -> datetime:
        """When it began, as far as that is known."""
        return begun_at(self.episode, kept=self.at)

    @cached_property
    def bytes(self) -> int:
        """Its size as JSON; of one that is no JSON, which only this store takes, as Python."""
        try:
            return len(encode_episode(self.episode))
        except EpisodeFormatError:
            return len(repr(self.episode))


def volume_of(kept: Sequence[KeptEpisode]) -> EpisodeVolume:
    """How much some episodes are together."""
    return EpisodeVolume(count=len(kept), bytes=sum(one.bytes for one in kept))


def breaking(kept: Iterable[KeptEpisode], retention: Retention) -> Sequence[KeptEpisode]:
    """The episodes that break ``retention``, the oldest first."""
    by_age = sorted(kept, key=lambda one: one.begun)  # stable: of one time as they were kept
    oldest = _oldest_to_stay(retention)
    count, size = len(by_age), sum(one.bytes for one in by_age)
    going: list[KeptEpisode] = []
    for one in by_age:
        too_many = retention.max_count is not None and count > retention.max_count
        too_much = retention.max_bytes is not None and size > retention.max_bytes
        if not (too_many or too_much or one.begun < oldest):
            break
        going.append(one)
        count, size = count - 1, size - one.bytes
    return going


def _oldest_to_stay(retention: Retention) -> datetime:
    first, now = datetime.min.replace(tzinfo=UTC), datetime.now(UTC)
    if retention.max_age is None or retention.max_age > now - first:
        return first
    return now - retention.max_age
