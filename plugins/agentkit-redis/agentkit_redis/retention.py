"""Old episodes go, a few at a time; definitions and events never do."""

from __future__ import annotations

from datetime import UTC, datetime

from agentkit.library.capabilities import EpisodeVolume, Retention
from agentkit_redis.connection import Word
from agentkit_redis.keys import FORMAT
from agentkit_redis.marker import refused
from agentkit_redis.reading import LibraryReader
from agentkit_redis.scripts import DROP_EPISODES

_AT_A_TIME = 200
"""Episodes that go in one step: others wait some milliseconds at most."""


class EpisodeRetention:
    """The methods of ``Pruning``."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader

    def volume(self) -> EpisodeVolume:
        """See ``Pruning.volume``."""
        self._reader.head()
        keys = self._reader.keys
        count, size = self._reader.connection.ask("HMGET", keys.volume, "count", "bytes")
        return EpisodeVolume(count=int(count or 0), bytes=int(size or 0))

    def prune(self, retention: Retention) -> EpisodeVolume:
        """See ``Pruning.prune``."""
        count = size = 0
        bounds = _bounds(retention)
        while True:
            gone, freed = self._drop(bounds)
            count, size = count + gone, size + freed
            if gone < _AT_A_TIME:
                return EpisodeVolume(count=count, bytes=size)

    def _drop(self, bounds: list[Word]) -> tuple[int, int]:
        keys, connection = self._reader.keys, self._reader.connection
        arguments = [FORMAT, _AT_A_TIME, *bounds]
        answer = connection.run(DROP_EPISODES, keys.of_episodes, arguments)
        if answer[0] != b"dropped":
            raise refused(connection, keys, answer)
        return int(answer[1]), int(answer[2])


def _bounds(retention: Retention) -> list[Word]:
    """The bounds as the script wants them, empty for none."""
    oldest = ""
    if retention.max_age is not None:
        oldest = repr(datetime.now(UTC).timestamp() - retention.max_age.total_seconds())
    most, size = retention.max_count, retention.max_bytes
    return [oldest, "" if most is None else most, "" if size is None else size]
