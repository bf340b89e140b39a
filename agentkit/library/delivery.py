"""Giving a batch of episodes to a store, and saying what went wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentkit.episodes import Episode
from agentkit.errors import EpisodeFormatError, UsageError
from agentkit.library.abilities import BatchAppending
from agentkit.library.store import EpisodeStore

logger = logging.getLogger(__name__)

Refuse = Callable[[int, Exception], None]
"""Called with the place of an episode that the store will never take, and why."""

_REFUSALS = (EpisodeFormatError, UsageError, ValueError, TypeError)
"""What a store raises about the episode itself; everything else may pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivered:
    """What came of a batch.

    Attributes:
        count: How many of its episodes, from the first on, need no further attempt.
        written: How many of these the store has.
        error: What stopped the rest; None when all of them are done.
    """

    count: int
    written: int
    error: Exception | None = None


def append_all(store: EpisodeStore, episodes: Sequence[Episode]) -> None:
    """Append episodes in one step, or one by one where the store can not do better."""
    if isinstance(store, BatchAppending):
        store.append_many(episodes)
        return
    for episode in episodes:
        store.append(episode)


def deliver(store: EpisodeStore, batch: Sequence[Episode], refuse: Refuse) -> Delivered:
    """Give a batch to the store, in one step where it can and one by one otherwise.

    An episode that the store refuses is passed to ``refuse`` and holds up no other.
    """
    if isinstance(store, BatchAppending):
        try:
            store.append_many(batch)
        except _REFUSALS as error:
            logger.info("a batch was refused, its episodes are tried one by one: %s", error)
        except Exception as error:  # noqa: BLE001 - whatever it was, the episodes are still there
            return Delivered(count=0, written=0, error=error)
        else:
            return Delivered(count=len(batch), written=len(batch))
    return _one_by_one(store, batch, refuse)


def _one_by_one(store: EpisodeStore, batch: Sequence[Episode], refuse: Refuse) -> Delivered:
    written = 0
    for place, episode in enumerate(batch):
        try:
            store.append(episode)
            written += 1
        except _REFUSALS as error:
            try:
                refuse(place, error)
            except OSError as full:
                error.add_note(f"it can not be set aside: {error_text(full)}")
                return Delivered(count=place, written=written, error=error)
        except Exception as error:  # noqa: BLE001 - as above
            return Delivered(count=place, written=written, error=error)
    return Delivered(count=len(batch), written=written)


def error_text(error: Exception) -> str:
    """The error in one line, with its notes."""
    notes = getattr(error, "__notes__", ())
    return "; ".join((f"{type(error).__name__}: {error}", *notes))
