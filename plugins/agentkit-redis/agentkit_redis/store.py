"""``RedisStore``: a library and its episodes in Redis, shared by many programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.episodes import Episode
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    EpisodeVolume,
    LibraryChange,
    Retention,
    StoreFault,
    ToolRevision,
)
from agentkit_redis.address import RedisAddress
from agentkit_redis.connection import RedisConnection
from agentkit_redis.durability import look_at
from agentkit_redis.episodes import EpisodeRetention, EpisodeStream
from agentkit_redis.reading import Keys, LibraryReader, begin
from agentkit_redis.versions import Commits, EventStream, History, Snapshots, key_faults


class RedisStore:
    """All parts of a store under one prefix of a Redis server, with every capability there is.

    What a commit is worth once it was acknowledged is for the server's settings to say, and
    ``durability`` says what they were when the store was opened. Any number of programs and
    threads may use one library; a fork of a program may go on with the store.

    Definitions are kept by content. Two of equal digest are one, as in ``SQLiteStore``.

    Args:
        address: Where the library lies.

    Attributes:
        address: As given; as text it does not show the password.
        durability: What the server does for an acknowledged commit.

    Raises:
        StoreUnavailableError: The server cannot be reached.
        StoreFormatError: The prefix holds data of another program or of a newer agentkit-redis.
            It is left as it was.
        StoreError: The server refuses the user, may drop keys by itself, or does less for a
            commit than the address requires.
    """

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._keys = Keys.under(address.prefix)
        self._connection = RedisConnection(address)
        try:
            self.durability = look_at(self._connection)
            begin(self._connection, self._keys)
        except BaseException:
            self._connection.close()
            raise
        reader = LibraryReader(self._connection, self._keys)
        self._reader = reader
        self._snapshots = Snapshots(reader)
        self._commits = Commits(reader, self._snapshots)
        self._history = History(reader)
        self._events = EventStream(reader)
        self._episodes = EpisodeStream(reader)
        self._retention = EpisodeRetention(reader)

    def __repr__(self) -> str:
        return f"RedisStore({str(self.address)!r})"

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        The newest snapshot is kept: asking again costs one round trip and gives the same object
        until somebody commits, and then only what changed is read.
        """
        return self._snapshots.load(version)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change``; see ``ToolStore.commit``."""
        return self._commits.commit(change, expected_version=expected_version)

    def versions(self) -> Sequence[int]:
        """All versions in ascending order."""
        return self._history.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        return self._history.history(tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes behind a version, ascending; see ``ToolStore.changes``."""
        return self._history.changes(after=after)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``, ascending."""
        return self._events.events(after=after)

    def append(self, episode: Episode) -> None:
        """Keep one episode; one with a known id is ignored.

        Raises:
            EpisodeFormatError: The episode holds a value that JSON cannot.
        """
        self._episodes.append_many([episode])

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several episodes, all or none; see ``BatchAppending.append_many``."""
        self._episodes.append_many(episodes)

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, or None."""
        return self._episodes.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, of those kept before the call; a page is read at a time."""
        return self._episodes.select(matching)

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Let old episodes go; see ``Pruning.prune``."""
        return self._retention.prune(retention)

    def volume(self) -> EpisodeVolume:
        """How much is kept of episodes."""
        return self._retention.volume()

    def check(self) -> Iterator[StoreFault]:
        """Count what the keys hold; see ``Checkable.check``."""
        return key_faults(self._reader)

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        self._connection.close()
