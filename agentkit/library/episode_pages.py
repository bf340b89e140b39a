"""Reading episodes a page at a time, where a store can give those beyond a place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import decode_episode
from agentkit.library.store import EpisodeFilter

ReadPage: TypeAlias = Callable[[int, int], Sequence[tuple[int, str]]]
"""From a place and a number of rows to so many places and texts beyond it, fewer at the end."""


def paged_episodes(
    matching: EpisodeFilter, read: ReadPage, *, newest: int, first_page: int, largest_page: int
) -> Iterator[Episode]:
    """The episodes that match, lazily; nothing is held in the store while the caller looks at them.

    Args:
        matching: What is wanted. The store looks at all of it; labels are compared once more here,
            for a store may not be able to read every text.
        read: Gives a page.
        newest: The last place to look at.
        first_page: Rows of the first page; each further one has twice as many.
        largest_page: Rows of a page at most.
    """
    left, size = matching.limit, first_page
    position = 0 if matching.oldest_first else newest + 1
    while left is None or left > 0:
        size = size if left is None else min(size, left)
        rows = read(position, size)
        for _, body in rows:
            episode = decode_episode(body)
            if matching.labels.items() <= episode.metadata.items():
                left = None if left is None else left - 1
                yield episode
        if len(rows) < size:
            return
        position, size = rows[-1][0], min(size * 2, largest_page)
