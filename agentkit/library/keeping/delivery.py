"""Handing a batch of episodes to a store, and telling what went wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentkit.errors import EpisodeFormatError, UsageError
from agentkit.library.abilities import BatchAppending
from agentkit.library.keeping.buffer import Pending
from agentkit.library.store import EpisodeStore

logger = logging.getLogger(__name__)

Refuse = Callable[[Pending, str], None]
"""Told of an episode that the store will never take, and why."""

_REFUSALS = (EpisodeFormatError, UsageError, ValueError, TypeError)
"""What a store raises about the episode itself; everything else may pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivered:
    """What came of a batch.

    Attributes:
        count: How many of its episodes, from the first on, need no further attempt.
        written: How many of these the store has.
        error: What stopped the rest; empty when all of them are done.
    """

    count: int
    written: int
    error: str = ""


def deliver(store: EpisodeStore, batch: Sequence[Pending], refuse: Refuse) -> Delivered:
    """Give a batch to the store, as one where it can and one by one otherwise.

    An episode that the store refuses is told to ``refuse`` and holds up no other.
    """
    if isinstance(store, BatchAppending):
        try:
            store.append_many([pending.episode for pending in batch])
        except _REFUSALS as error:
            logger.info("a batch was refused, its episodes are tried one by one: %s", error)
        except Exception as error:  # noqa: BLE001 - whatever it was, the episodes are still there
            return Delivered(count=0, written=0, error=_said(error))
        else:
            return Delivered(count=len(batch), written=len(batch))
    return _one_by_one(store, batch, refuse)


def _one_by_one(store: EpisodeStore, batch: Sequence[Pending], refuse: Refuse) -> Delivered:
    written = 0
    for place, pending in enumerate(batch):
        try:
            store.append(pending.episode)
            written += 1
        except _REFUSALS as error:
            try:
                refuse(pending, _said(error))
            except OSError as full:
                stopped = f"{_said(error)}; and it can not be set aside: {_said(full)}"
                return Delivered(count=place, written=written, error=stopped)
        except Exception as error:  # noqa: BLE001 - as above
            return Delivered(count=place, written=written, error=_said(error))
    return Delivered(count=len(batch), written=written)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
