"""One ranking out of those of several sub-goals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import zip_longest
from operator import add, or_

from agentkit.messages import Usage
from agentkit.retrieval.retriever import Hit
from agentkit.retrieval.survivors import Survivors


def merged(found: Sequence[Survivors]) -> Survivors:
    """The survivors of all sub-goals; their hits take turns, the best of each first.

    A tool found for two steps stands where it is best. Scores stay what they were in their own
    ranking, so they do not fall from hit to hit.

    Args:
        found: At least one, of one library.
    """
    first = found[0]
    if len(found) == 1:
        return first
    masks = [survivors.mask for survivors in found if survivors.mask is not None]
    return replace(
        first,
        mask=reduce(or_, masks) if len(masks) == len(found) else None,
        factors=None,
        hits=tuple(_in_turn([survivors.hits for survivors in found])),
        usage=reduce(add, (survivors.usage for survivors in found), Usage()),
        notes=tuple(dict.fromkeys(note for survivors in found for note in survivors.notes)),
    )


def _in_turn(rankings: Sequence[Sequence[Hit]]) -> Iterator[Hit]:
    taken: set[str] = set()
    for rank in zip_longest(*rankings):
        for hit in rank:
            if hit is not None and hit.definition.name not in taken:
                taken.add(hit.definition.name)
                yield hit
