"""``EpisodeQueue``: the episodes of an agent on their way to its store.

Nothing here waits for a store on an event loop: one thread writes, together what comes together.
An episode that the store does not take stays in the queue, as it was, and is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

from agentkit import episodes as episodes_door  # a door: redaction loads when an error is logged
from agentkit.agent.types import OnStoreFailure
from agentkit.episodes import Episode
from agentkit.errors import (
    EpisodeFormatError,
    EpisodeNotKeptError,
    StoreUnavailableError,
    UsageError,
)
from agentkit.library.store import EpisodeStore, append_all
from agentkit.tools.invocation import run_in_daemon_thread

logger = logging.getLogger(__name__)

_BATCH = 256
_MOST_WAITING = 10_000
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_IDLE_SECONDS = 1.0
_LOG_EVERY_SECONDS = 60.0

_REFUSALS = (EpisodeFormatError, UsageError, ValueError, TypeError)
"""Errors about the episode itself; any other may be temporary."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueState:
    """How a queue of episodes stands.

    Attributes:
        kept: Episodes that the store took since the start.
        waiting: Episodes that it has not got yet.
        delayed: Episodes that it did not take at the first attempt, since the start.
        refused: Episodes that it will never take: each was reported to the caller of its run.
        oldest_seconds: How long the oldest of those that wait has waited.
        failures: Failed attempts in a row; 0 when the last one worked.
        last_error: What the last failure said.
        retry_after: Seconds until the result of the next attempt can be expected.
    """

    kept: int = 0
    waiting: int = 0
    delayed: int = 0
    refused: int = 0
    oldest_seconds: float = 0.0
    failures: int = 0
    last_error: str = ""
    retry_after: float = 0.0


@dataclass(kw_only=True, slots=True)
class Watched:
    """What became of the episode of one run.

    Attributes:
        episode: The episode as the run recorded it; None before that.
        is_kept: Whether the store has it.
    """

    episode: Episode | None = None
    is_kept: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    episode: Episode
    since: float = field(default_factory=time.monotonic)
    outcome: Future[Exception | None] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.outcome.set_running_or_notify_cancel()  # so that nobody who waits can cancel it


class EpisodeQueue:
    """Keeps the episodes of an agent's runs. Safe to use from several threads and event loops.

    Args:
        store: Where they go; None for nowhere.
        on_failure: What the agent does while the store takes none.
        wait_seconds: Longest wait of a run for its episode. One that has not reached the store by
            then is tried on, and its run hears that it is not kept yet.
    """

    def __init__(
        self,
        store: EpisodeStore | None,
        *,
        on_failure: OnStoreFailure = "refuse_runs",
        wait_seconds: float = 10.0,
    ) -> None:
        self.on_failure = on_failure
        self._store = store
        self._wait_seconds = wait_seconds
        self._changed = threading.Condition()
        self._entries: dict[str, _Entry] = {}
        self._watched: dict[str, Watched] = {}
        self._thread: threading.Thread | None = None
        self._kept = self._delayed = self._refused = self._failures = self._attempts = 0
        self._last_error: Exception | None = None
        self._attempt_seconds = 0.0
        self._next_attempt = 0.0
        self._logged_at = -math.inf

    @property
    def state(self) -> QueueState:
        """How it stands now. This never waits for the store."""
        with self._changed:
            now = time.monotonic()
            oldest = next(iter(self._entries.values()), None)
            pause = max(0.0, self._next_attempt - now) + self._attempt_seconds
            return QueueState(
                kept=self._kept,
                waiting=len(self._entries),
                delayed=self._delayed,
                refused=self._refused,
                oldest_seconds=0.0 if oldest is None else now - oldest.since,
                failures=self._failures,
                last_error="" if self._last_error is None else error_text(self._last_error),
                retry_after=pause if self._failures else 0.0,
            )

    @property
    def is_failing(self) -> bool:
        """Whether the store took nothing when it was last tried, or has not answered in time."""
        if not self._entries:  # asked before each run, so without the lock where all is well
            return self._failures > 0
        state = self.state
        return state.failures > 0 or state.oldest_seconds > self._wait_seconds

    @property
    def refuses_runs(self) -> bool:
        """Whether no run may begin now; with ``_MOST_WAITING`` episodes in memory none ever may."""
        is_full = len(self._entries) >= _MOST_WAITING
        return (is_full or self.on_failure == "refuse_runs") and self.is_failing

    @property
    def refuses_writes(self) -> bool:
        """Whether tools that may change something are not run now."""
        return self.on_failure != "continue" and self.is_failing

    @property
    def waiting(self) -> Sequence[Episode]:
        """The episodes that the store has not got yet, oldest first."""
        with self._changed:
            return tuple(entry.episode for entry in self._entries.values())

    @contextmanager
    def watching(self, episode_id: str) -> Iterator[Watched]:
        """Learn inside what becomes of the episode of that id."""
        watched = self._watched[episode_id] = Watched()
        try:
            yield watched
        finally:
            del self._watched[episode_id]

    async def put(self, episode: Episode) -> Exception | None:
        """Hand an episode over and wait until the store has it; cancelled meanwhile, too.

        Returns:
            Why the store does not have it, None when it has. ``EpisodeNotKeptError`` says that it
            stays here and is tried again; any other error that the store will never take it.
        """
        watched = self._watched.get(episode.episode_id, Watched())
        watched.episode = episode
        if self._store is None:
            watched.is_kept = True
            return None
        outcome = asyncio.wrap_future(self._submit(episode))
        try:
            await asyncio.wait({outcome}, timeout=self._wait_seconds)
        except asyncio.CancelledError:  # who waits for the run to end finds its episode kept
            await asyncio.wait({outcome}, timeout=self._wait_seconds)
            raise
        finally:
            watched.is_kept = outcome.done() and outcome.result() is None
            is_late = outcome.cancel()  # its loop may be closed before the store answers
        if is_late:
            return _not_kept(episode, f"no answer within {self._wait_seconds:g} s")
        return outcome.result()

    async def check(self) -> None:
        """Refuse a run that is to begin, where no episode can be kept and the policy says so.

        Raises:
            StoreUnavailableError: The store was tried once more, and takes no episodes.
        """
        if self.refuses_runs:
            await run_in_daemon_thread(lambda: self.flush(self._wait_seconds))
        if self.refuses_runs:
            state = self.state
            raise StoreUnavailableError(
                f"no run begins while the store takes no episodes: {state.last_error}. "
                f"{state.waiting} wait for it and are tried again; the same call may work in "
                f"{math.ceil(state.retry_after)} s. on_store_failure says whether runs begin "
                "regardless"
            )

    def flush(self, timeout_seconds: float) -> bool:
        """Try what waits once more, now. Blocks: not for an event loop.

        Returns:
            Whether nothing waits any more.
        """
        with self._changed:
            if not self._entries:
                return True
            self._next_attempt = 0.0
            until = self._attempts + 1
            self._wake()
            self._changed.wait_for(
                lambda: not self._entries or (self._failures > 0 and self._attempts >= until),
                timeout_seconds,
            )
            return not self._entries

    def _submit(self, episode: Episode) -> Future[Exception | None]:
        with self._changed:
            known = self._entries.get(episode.episode_id)
            if known is not None:
                return known.outcome
            entry = self._entries[episode.episode_id] = _Entry(episode=episode)
            self._wake()
            return entry.outcome

    def _wake(self) -> None:
        """See that the thread looks; a fork of the process has none yet."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._work, name="agentkit-episodes", daemon=True
            )
            self._thread.start()
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                batch = self._next_batch()
                if batch is None:
                    self._thread = None
                    return
            assert self._store is not None
            began = time.monotonic()
            outcomes, error = _written(self._store, [entry.episode for entry in batch])
            with self._changed:
                self._attempt_seconds = time.monotonic() - began
                self._attempts += 1
                self._settle(batch, outcomes)
                self._note(error)
                self._changed.notify_all()

    def _next_batch(self) -> Sequence[_Entry] | None:
        """What is to be written next, once there is something; None after a while without."""
        if not self._entries and not self._changed.wait_for(lambda: self._entries, _IDLE_SECONDS):
            return None
        while (pause := self._next_attempt - time.monotonic()) > 0:
            if self._last_error is not None:
                self._answer_all(self._last_error)  # nobody waits for a store that is known to fail
            self._changed.wait(pause)
        entries = iter(self._entries.values())
        return [entry for entry, _ in zip(entries, range(_BATCH), strict=False)]

    def _settle(self, batch: Sequence[_Entry], outcomes: Sequence[Exception | None]) -> None:
        """Let go of what the store has, or will never take."""
        for entry, refusal in zip(batch, outcomes, strict=False):
            del self._entries[entry.episode.episode_id]
            if not entry.outcome.done():
                entry.outcome.set_result(refusal)
            self._kept += refusal is None
            self._refused += refusal is not None

    def _answer_all(self, error: Exception) -> None:
        """Tell those who wait that their episodes are not kept yet."""
        for entry in self._entries.values():
            if not entry.outcome.done():
                self._delayed += 1
                entry.outcome.set_result(_not_kept(entry.episode, error_text(error), error))

    def _note(self, error: Exception | None) -> None:
        """Take notice of how an attempt went: one line in the log at first, then one a minute."""
        now = time.monotonic()
        if error is None:
            if self._failures:
                logger.warning("the store takes episodes again")
            self._failures, self._next_attempt, self._logged_at = 0, 0.0, -math.inf
            return
        self._failures, self._last_error = self._failures + 1, error
        pause = _FIRST_PAUSE_SECONDS * 2 ** min(self._failures - 1, 10)
        self._next_attempt = now + min(pause, _LONGEST_PAUSE_SECONDS)
        self._answer_all(error)
        if now - self._logged_at >= _LOG_EVERY_SECONDS:
            self._logged_at = now
            logger.error(
                "the store takes no episodes, %d wait and are tried again: %s",
                len(self._entries),
                error_text(error),
            )


def _written(
    store: EpisodeStore, episodes: Sequence[Episode]
) -> tuple[Sequence[Exception | None], Exception | None]:
    """Give episodes to the store, together or, if it refuses one of them, one by one.

    Returns:
        Of the first ones None where the store has it, or why it never will; what stopped the rest.
    """
    try:
        append_all(store, episodes)
    except _REFUSALS as error:
        logger.info("a batch was refused, its episodes are tried one by one: %s", error_text(error))
    except Exception as error:  # noqa: BLE001 - whatever it was, the episodes are still there
        return (), error
    else:
        return [None] * len(episodes), None
    outcomes: list[Exception | None] = []
    for episode in episodes:
        try:
            store.append(episode)
            outcomes.append(None)
        except _REFUSALS as error:
            outcomes.append(error)
        except Exception as error:  # noqa: BLE001 - as above
            return outcomes, error
    return outcomes, None


def error_text(error: Exception) -> str:
    """The error in one line, with its notes and without what looks like a secret."""
    return episodes_door.error_line(error)


def _not_kept(episode: Episode, why: str, cause: Exception | None = None) -> EpisodeNotKeptError:
    error = EpisodeNotKeptError(
        f"the run ended, but the store did not take its episode {episode.episode_id}: {why}. The "
        "episode waits in memory and is tried again; what the tools did is done, so do not repeat "
        "the run",
        episode=episode,
    )
    error.__cause__ = cause
    return error
