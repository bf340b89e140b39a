"""What changed between two texts, word by word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from agentkit.evolution.language.pieces import pieces

PartKind = Literal["kept", "added", "removed"]

_MOST_PIECES = 4_000
"""Of the part that differs; matching takes time by their square, and nobody reads more."""


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
    Very long texts that differ all over are shown as removed and added whole.

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
    old, new = pieces(before), pieces(after)
    if max(len(old), len(new)) > _MOST_PIECES and before != after:
        return tuple(_parts(before, after, is_kept=False))
    found: list[DiffPart] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        found += _parts("".join(old[i1:i2]), "".join(new[j1:j2]), is_kept=kind == "equal")
    return tuple(found)


def _parts(old: str, new: str, *, is_kept: bool) -> Iterator[DiffPart]:
    if is_kept:
        yield DiffPart(kind="kept", text=old)
        return
    if old:
        yield DiffPart(kind="removed", text=old)
    if new:
        yield DiffPart(kind="added", text=new)


def marked(parts: tuple[DiffPart, ...]) -> str:
    """A difference in one text, as GNU wdiff marks it: added ``{+ +}``, removed ``[- -]``."""
    ends = {"kept": ("", ""), "added": ("{+", "+}"), "removed": ("[-", "-]")}
    return "".join(f"{ends[part.kind][0]}{part.text}{ends[part.kind][1]}" for part in parts)
