"""Reading a store together with what it has not got yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from agentkit.episodes import Episode
from agentkit.library.changes import check_filter, matches
from agentkit.library.store import EpisodeFilter, EpisodeStore


def select_with_pending(
    store: EpisodeStore, pending: Iterable[Episode], matching: EpisodeFilter
) -> Iterator[Episode]:
    """What ``store.select`` gives once it has the pending episodes.

    Args:
        store: Where the older ones are.
        pending: Those on their way, oldest first, as they were before this call: one that arrives
            meanwhile comes once.
        matching: Which ones to read.
    """
    check_filter(matching)
    waiting = {one.episode_id: one for one in pending if matches(one, matching)}
    # The youngest first: they arrive in order, so that what is left are the last ones, although
    # some arrive while this looks.
    for episode_id in tuple(reversed(waiting)):
        if store.get(episode_id) is not None:  # it arrived, or its id was known before
            del waiting[episode_id]
    if not waiting:
        return store.select(matching)
    limit = None if matching.limit is None else matching.limit + len(waiting)
    kept = store.select(replace(matching, limit=limit))
    if matching.oldest_first:
        found = _then(kept, waiting)
    else:
        rest = (one for one in kept if one.episode_id not in waiting)
        found = chain(reversed(waiting.values()), rest)
    return islice(found, matching.limit)


def _then(kept: Iterable[Episode], waiting: dict[str, Episode]) -> Iterator[Episode]:
    """The kept episodes, then those of the waiting ones that were not among them."""
    left = dict(waiting)
    for episode in kept:
        left.pop(episode.episode_id, None)
        yield episode
    yield from left.values()
