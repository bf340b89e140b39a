"""Which prompts are read together: equal beginnings once, then what each goes on with.

The tools of a library stand at the beginning of every prompt that is rendered from it, and a later
turn of a conversation begins as its group's prompt does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, kw_only=True, slots=True)
class Stem:
    """A beginning, and the prompts that have it.

    Attributes:
        length: Its tokens; 0 when the prompts are read each by itself.
        places: Of the prompts.
    """

    length: int
    places: tuple[int, ...]


def stems(prompts: Sequence[tuple[int, ...]], *, least: int = 16) -> list[Stem]:
    """The beginnings that leave the fewest tokens to be read.

    Prompts in order of their tokens stand beside those that they share most with, so that the best
    stems are of neighbours: for k neighbours that agree on s tokens, (k - 1) s are saved.

    Args:
        prompts: All different and none empty. At least one token of each stays its own.
        least: Tokens that must be saved for a stem; fewer are not worth a pass of their own.

    Returns:
        Stems that hold every prompt once. A prompt on its own has a stem of length 0.

    Example:
        >>> [(stem.length, stem.places) for stem in stems([(1, 2, 3), (7,), (1, 2, 4)], least=1)]
        [(2, (0, 2)), (0, (1,))]
    """
    order = sorted(range(len(prompts)), key=lambda place: prompts[place])
    agreed = [_agreed(prompts[one], prompts[two]) for one, two in pairwise(order)]
    best = [0] * (len(order) + 1)
    cut = list(range(-1, len(order)))  # where the last group of the first n prompts begins
    for end in range(1, len(order) + 1):
        best[end], cut[end] = best[end - 1], end - 1
        length = len(prompts[order[end - 1]]) - 1
        for start in range(end - 2, -1, -1):
            length = min(length, agreed[start], len(prompts[order[start]]) - 1)
            if not length:
                break
            saved = (end - start - 1) * length
            if saved >= least and best[start] + saved > best[end]:
                best[end], cut[end] = best[start] + saved, start
    return _grouped(prompts, order, cut)


def _grouped(
    prompts: Sequence[tuple[int, ...]], order: Sequence[int], cut: Sequence[int]
) -> list[Stem]:
    found: list[Stem] = []
    end = len(order)
    while end:
        places = tuple(order[cut[end] : end])
        if len(places) == 1:
            length = 0
        else:  # in order, the first and the last share what all share
            first, last = prompts[places[0]], prompts[places[-1]]
            shortest = min(len(prompts[place]) for place in places)
            length = min(_agreed(first, last), shortest - 1)
        found.append(Stem(length=length, places=places))
        end = cut[end]
    return found[::-1]


def _agreed(one: Sequence[int], two: Sequence[int]) -> int:
    """How many tokens both begin with."""
    if one[: len(two)] == two[: len(one)]:
        return min(len(one), len(two))
    low, high = 0, min(len(one), len(two))
    while low + 1 < high:  # the slices agree up to low, and not up to high
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == two[:middle] else (low, middle)
    return low
