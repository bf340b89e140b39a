"""Names that look like one that is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import islice

_RANKED = 1_500
"""Names whose pairs of letters are compared, out of any number."""

_COMPARED = 25
"""Names that are compared letter by letter, out of those."""

_LETTERS = 64


def nearest(name: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Up to ``most`` of the known names that look like ``name``, best first.

    Names that start alike or have a word in common are ranked by the pairs of letters that they
    share, and the best of them compared letter by letter, so that ten thousand known names take
    milliseconds.
    """
    # difflib loads when something is wrong only
    from difflib import get_close_matches

    folded = name.casefold()[:_LETTERS]
    wanted = _pairs(folded)

    def shared(other: str) -> float:
        pairs = _pairs(other.casefold()[:_LETTERS])
        return 2 * len(wanted & pairs) / ((len(wanted) + len(pairs)) or 1)

    ranked = nlargest(_COMPARED, islice(_akin(folded, known), _RANKED), key=shared)
    likely = {other.casefold()[:_LETTERS]: other for other in ranked}
    return tuple(likely[match] for match in get_close_matches(folded, likely, most, 0.6))


def _akin(folded: str, known: Iterable[str]) -> Iterator[str]:
    """The names of about the same length that start alike or have a word in common."""
    first, words, slack = folded[:1], set(folded.split("_")), 4 + len(folded) // 4
    for other in known:
        if -slack <= len(other) - len(folded) <= slack:
            lower = other.lower()
            if lower[:1] == first or not words.isdisjoint(lower.split("_")):
                yield other


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names the nearest known names; empty when none is near."""
    names = nearest(name, known)
    return f"Did you mean {' or '.join(f'`{other}`' for other in names)}?" if names else ""


def _pairs(text: str) -> frozenset[str]:
    return frozenset(map("".join, zip(f" {text}", text, strict=False)))
