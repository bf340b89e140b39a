"""What changed between two texts, word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from agentkit.evolution.language.pieces import is_word, pieces

PartKind = Literal["kept", "added", "removed"]

_MOST_PIECES = 4_000
"""Matching takes time by their square, and nobody reads more."""

ALIKE = 0.4
"""Texts that share less of their words are told one after the other (``likeness``)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffPart:
    """A run of a text that stayed, came in or went out.

    Attributes:
        kind: Which of these.
        text: The run as it is written, white space included.
    """

    kind: PartKind
    text: str


def word_diff(before: str, after: str) -> tuple[DiffPart, ...]:
    """What to take out of one text and put into it to have the other, by words.

    The kept and removed parts together are the first text, the kept and added ones the second.
    Texts that share little are removed and added whole, because words that happen to be in both
    help nobody; so are very long ones. White space alone, between two changes, is not kept.

    Args:
        before: The earlier text.
        after: The later one.

    Example:
        >>> for part in word_diff("List used cars.", "List all used cars."):
        ...     print(part.kind, repr(part.text))
        kept 'List'
        added ' all'
        kept ' used cars.'
    """
    if before == after:
        return (DiffPart(kind="kept", text=before),) if before else ()
    old, new = pieces(before), pieces(after)
    if max(len(old), len(new)) > _MOST_PIECES or _likeness(old, new) < ALIKE:
        return tuple(_changed(before, after))
    found: list[DiffPart] = []
    gone, come = "", ""
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left, right = "".join(old[i1:i2]), "".join(new[j1:j2])
        is_gap = not left.strip() and (gone or come) and i2 < len(old)
        if kind == "equal" and not is_gap:
            found += [*_changed(gone, come), DiffPart(kind="kept", text=left)]
            gone, come = "", ""
        else:
            gone, come = gone + left, come + right
    return (*found, *_changed(gone, come))


def _changed(old: str, new: str) -> Iterator[DiffPart]:
    if old:
        yield DiffPart(kind="removed", text=old)
    if new:
        yield DiffPart(kind="added", text=new)


def likeness(before: str, after: str) -> float:
    """The share of words that two texts have in common in order, from 0 to 1.

    Example:
        >>> likeness("Boil the water.", "Boil water"), likeness("Boil water.", "Who are you?")
        (0.8, 0.0)
    """
    return _likeness(pieces(before), pieces(after))


def _likeness(old: Sequence[str], new: Sequence[str]) -> float:
    mine, yours = (
        [piece for piece in side[:_MOST_PIECES] if is_word(piece)] for side in (old, new)
    )
    return SequenceMatcher(None, mine, yours, autojunk=False).ratio()


def marked(parts: tuple[DiffPart, ...]) -> str:
    """A difference in one text, as GNU wdiff marks it: added ``{+ +}``, removed ``[- -]``."""
    ends = {"kept": ("", ""), "added": ("{+", "+}"), "removed": ("[-", "-]")}
    return "".join(f"{ends[part.kind][0]}{part.text}{ends[part.kind][1]}" for part in parts)
