"""The episodes that a writer holds in memory, in the order in which they came."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import encode_episode


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """An episode that waits to be written.

    Attributes:
        episode: The episode.
        line: The same as a line of JSON, as it was when it came: what it holds may be changed in
            place meanwhile, and then a file of many must not fail at one.
        since: When it came, on the monotonic clock.
    """

    episode: Episode
    line: bytes
    since: float = field(default_factory=time.monotonic)

    @property
    def bytes(self) -> int:
        """Its size as JSON text."""
        return len(self.line)

    @classmethod
    def of(cls, episode: Episode) -> Pending:
        """Write an episode down.

        Raises:
            EpisodeFormatError: It holds a value that JSON can not.
        """
        return cls(episode=episode, line=encode_episode(episode).encode())


class Buffer:
    """A queue with a size. It has no lock: its owner has one."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, Pending]] = {}
        self.bytes = 0
        """Size of all that is held."""
        self.added = 0
        """Number of the episode that came last, from 1."""

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, episode_id: object) -> bool:
        return episode_id in self._held

    def __iter__(self) -> Iterator[Pending]:
        return (pending for _, pending in self._held.values())

    @property
    def first(self) -> int | None:
        """Number of the episode that waits longest; None when nothing does."""
        return next((number for number, _ in self._held.values()), None)

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, if it is held."""
        found = self._held.get(episode_id)
        return None if found is None else found[1].episode

    def add(self, pending: Pending) -> None:
        """Put an episode at the end."""
        self.added += 1
        self._held[pending.episode.episode_id] = (self.added, pending)
        self.bytes += pending.bytes

    def batch(self, *, count: int, size: int) -> Sequence[Pending]:
        """The first episodes, as many as fit; one at least."""
        found: list[Pending] = []
        for pending in self:
            size -= pending.bytes
            if found and (len(found) == count or size < 0):
                break
            found.append(pending)
        return found

    def drop(self, done: Iterable[Pending]) -> None:
        """Forget episodes; those that went another way meanwhile do not count."""
        for pending in done:
            if self._held.pop(pending.episode.episode_id, None) is not None:
                self.bytes -= pending.bytes
