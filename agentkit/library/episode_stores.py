"""Stores around a store of episodes: redacted, kept elsewhere, and pruned when old."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.library.capabilities import EpisodeVolume, Pruning, Retention, append_all
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    EpisodeStore,
    LibraryChange,
    Store,
    ToolRevision,
)

_CAPABILITIES = ("prune", "prunable", "volume")


class RedactingStore:
    """Keeps episodes as ``redact`` returns them; nothing else reaches the store.

    What ``redact`` raises is raised to whoever appends, and the episode is not kept.

    Args:
        store: Where they are kept. Closing this one closes it.
        redact: Gives the episode to keep, such as ``agentkit.episodes.redaction.Redaction``. It
            leaves the id as it is.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit import open_store
        >>> quiet = RedactingStore(open_store("memory:"), lambda one: replace(one, request="-"))
        >>> quiet.append(Episode(episode_id="e1", request="Hi"))
        >>> quiet.get("e1").request
        '-'
    """

    def __init__(self, store: EpisodeStore, redact: Callable[[Episode], Episode]) -> None:
        self._store = store
        self._redact = redact
        for name in _CAPABILITIES:
            if hasattr(store, name):  # a capability is having the method
                setattr(self, name, getattr(store, name))

    def __repr__(self) -> str:
        return f"RedactingStore({self._store!r})"

    def append(self, episode: Episode) -> None:
        """Keep one episode, redacted."""
        self._store.append(self._redact(episode))

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several, redacted; one by one where the store can not do better."""
        append_all(self._store, tuple(map(self._redact, episodes)))

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id as it is kept, or None."""
        return self._store.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, as they are kept."""
        return self._store.select(matching)

    def close(self) -> None:
        """Close the store."""
        self._store.close()


_CAPABILITIES_OF_TOOLS = ("watch", "follow", "refresh", "check_staleness")
_CAPABILITIES_OF_EPISODES = ("append_many", "prune", "prunable", "volume")


class SplitStore:
    """A store whose episodes are kept elsewhere; see ``with_episodes``.

    What a part can do beyond the seam, the whole can: it watches as the first one does, and prunes
    as the second one does.

    Attributes:
        tools: Keeps definitions and events.
        episodes: Keeps episodes.
    """

    def __init__(self, tools: Store, episodes: EpisodeStore) -> None:
        self.tools = tools
        self.episodes = episodes
        for part, names in ((tools, _CAPABILITIES_OF_TOOLS), (episodes, _CAPABILITIES_OF_EPISODES)):
            for name in names:
                if hasattr(part, name):  # a capability is having the method
                    setattr(self, name, getattr(part, name))

    def __repr__(self) -> str:
        return f"SplitStore({self.tools!r}, episodes={self.episodes!r})"

    def load(self, version: int | None = None) -> Library:
        """See ``ToolStore.load``."""
        return self.tools.load(version)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """See ``ToolStore.commit``."""
        return self.tools.commit(change, expected_version=expected_version)

    def versions(self) -> Sequence[int]:
        """See ``ToolStore.versions``."""
        return self.tools.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """See ``ToolStore.history``."""
        return self.tools.history(tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """See ``ToolStore.changes``."""
        return self.tools.changes(after=after)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        return self.tools.events(after=after)

    def append(self, episode: Episode) -> None:
        """See ``EpisodeStore.append``."""
        self.episodes.append(episode)

    def get(self, episode_id: str) -> Episode | None:
        """See ``EpisodeStore.get``."""
        return self.episodes.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """See ``EpisodeStore.select``."""
        return self.episodes.select(matching)

    def close(self) -> None:
        """Close the episodes, which may have some to write yet, then the rest."""
        try:
            self.episodes.close()
        finally:
            self.tools.close()


def with_episodes(store: Store, *, episodes: EpisodeStore) -> SplitStore:
    """A store with its definitions and events, but with episodes that are kept elsewhere.

    So an agent keeps its episodes through a writer, or reads its library over HTTP and keeps
    episodes in a file of its own. Episodes that ``store`` holds itself are not seen.

    Example:
        >>> from agentkit import open_store
        >>> store = with_episodes(open_store("memory:"), episodes=open_store("memory:"))
        >>> store.append(Episode(episode_id="e1", request="Hi"))
        >>> store.tools.get("e1"), store.episodes.get("e1").request
        (None, 'Hi')
        >>> store.close()
    """
    return SplitStore(store, episodes)


logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionState:
    """What a loop has done.

    Attributes:
        rounds: How often it looked.
        gone: What it deleted, all rounds together.
        failures: Failed rounds in a row; 0 when the last one worked.
        last_error: What the last failure said.
    """

    rounds: int = 0
    gone: EpisodeVolume = field(default_factory=lambda: EpisodeVolume(count=0, bytes=0))
    failures: int = 0
    last_error: str = ""


class RetentionLoop:
    """Prunes a store at once and then every ``every_seconds``, until it is closed.

    A round that fails, since the store is away, is said in the log and made up for by the next one.
    Several programs may run one each: they delete what one would have.

    Args:
        store: The store; the loop does not close it.
        retention: What may stay.
        every_seconds: From the end of one round to the next.

    Raises:
        UsageError: The store can not let episodes go, or the time is no pause.

    Example:
        >>> from datetime import timedelta
        >>> from agentkit import open_store
        >>> month = Retention(max_age=timedelta(days=30))
        >>> with RetentionLoop(open_store("memory:"), month) as loop:
        ...     loop.state.failures
        0
    """

    def __init__(
        self, store: object, retention: Retention, *, every_seconds: float = 600.0
    ) -> None:
        if not every_seconds > 0:
            raise UsageError(f"every_seconds is more than 0; got {every_seconds!r}")
        self._store = pruning(store)
        self._retention = retention
        self._every_seconds = every_seconds
        self._stop = threading.Event()
        self._state = RetentionState()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def state(self) -> RetentionState:
        """What it has done so far."""
        return self._state

    def close(self) -> None:
        """Stop; a round that has begun is finished. A second call does nothing."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._state = self._after_a_round()
            if self._stop.wait(self._every_seconds):
                return

    def _after_a_round(self) -> RetentionState:
        before = self._state
        try:
            gone = self._store.prune(self._retention)
        except Exception as error:  # noqa: BLE001 - the next round makes up for it
            said = f"{type(error).__name__}: {error}"
            logger.warning("old episodes could not be deleted, it is tried again: %s", said)
            return RetentionState(
                rounds=before.rounds + 1,
                gone=before.gone,
                failures=before.failures + 1,
                last_error=said,
            )
        if gone.count:
            logger.info("%d episodes of %d bytes were too old or too many", gone.count, gone.bytes)
        return RetentionState(
            rounds=before.rounds + 1,
            gone=EpisodeVolume(
                count=before.gone.count + gone.count, bytes=before.gone.bytes + gone.bytes
            ),
            last_error=before.last_error,
        )


def pruning(store: object) -> Pruning:
    """The store as one that can let episodes go.

    Raises:
        UsageError: It can not.
    """
    if not isinstance(store, Pruning):
        raise UsageError(
            f"{type(store).__name__} can not let episodes go: it has no method prune "
            "(agentkit.library.capabilities.Pruning); use the retention of what keeps them"
        )
    return store
