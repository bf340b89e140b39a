"""The words of texts in any script, and how two texts differ word by word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Literal, TypeAlias

_Kind = Literal["word", "alone", "attached", "space", "other"]

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Scripts that put no space between words: Thai, Lao, Burmese, Khmer, kana, Han."""

_APOSTROPHES = "'\u2019"
_IN_NUMBERS = ".,"


def pieces(text: str) -> list[str]:
    """The words of a text with everything between them; put together they are the text again.

    This is UAX #29 (Unicode word boundaries) cut down to what descriptions need. A word is a run
    of letters, digits and the accents on them; an underscore or an apostrophe inside does not end
    it (``max_price``, ``don't``), nor does a point or comma between digits (``3.5``). A run of
    white space is one piece, any other character is one by itself.

    Where a script puts no space between words, each character with its accents counts as a word.
    To cut Chinese into words needs a dictionary; one character is the unit that edit distances and
    type counts of such texts are usually given in, and it is the same for every revision.

    Args:
        text: Any text.

    Example:
        >>> pieces("Don't pass max_price=3.5!")
        ["Don't", ' ', 'pass', ' ', 'max_price', '=', '3.5', '!']
        >>> pieces("查询天气 today")
        ['查', '询', '天', '气', ' ', 'today']
    """
    if not text:
        return []
    cuts = [0, *(at for at in range(1, len(text)) if _is_border(text, at)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)]


def words(text: str) -> list[str]:
    """The words of a text, without case and with one form for each letter (NFKC).

    Args:
        text: Any text.

    Example:
        >>> words("The CITY, e.g. Zürich.")
        ['the', 'city', 'e', 'g', 'zürich']
    """
    return list(_words(text))


def _words(text: str) -> Iterator[str]:
    for piece in pieces(text):
        if is_word(piece):
            yield unicodedata.normalize("NFKC", piece).casefold()


def is_word(piece: str) -> bool:
    """Whether a piece is a word, and not white space, punctuation or a symbol."""
    return _kind(piece[0]) in {"word", "alone", "attached"} and piece.strip("_") != ""


def is_space(piece: str) -> bool:
    """Whether a piece is white space."""
    return _kind(piece[0]) == "space"


def _is_border(text: str, at: int) -> bool:
    """Whether a new piece begins at a place."""
    before, here = _kind(text[at - 1]), _kind(text[at])
    if here == "attached":
        return before in {"space", "other"}
    if here == "space":
        return before != "space"
    if here == "word":
        return before not in {"word", "attached"} and not _is_joint(text, at - 1)
    return here == "alone" or not _is_joint(text, at)


def _is_joint(text: str, at: int) -> bool:
    """Whether an apostrophe, point or comma stands inside a word or number."""
    if not 0 < at < len(text) - 1:
        return False
    before, mark, after = text[at - 1], text[at], text[at + 1]
    if mark in _APOSTROPHES:
        return _kind(before) == _kind(after) == "word"
    return mark in _IN_NUMBERS and before.isdigit() and after.isdigit()


@lru_cache(maxsize=8_192)  # the same few hundred characters come again and again
def _kind(character: str) -> _Kind:
    if character == "_":
        return "word"
    if character.isspace():
        return "space"
    category = unicodedata.category(character)[0]
    if category == "M":
        return "attached"
    if category in "LN":
        return "alone" if _UNSPACED.match(character) else "word"
    return "other"


Part = Literal["same", "removed", "added"]

Words: TypeAlias = tuple[tuple[Part, str], ...]
"""A text in parts: what stays, what goes and what comes."""

_MOST_PIECES = 4_000
"""Matching takes time by their square, and nobody reads more."""

ALIKE = 0.4
"""Texts that share less of their words are told one after the other (``_likeness``)."""


def word_diff(before: str, after: str) -> Words:
    """What to take out of one text and put into it to have the other, by words.

    What is the same and what is removed together make the first text,
    what is the same and what is added the second.
    Texts that share little are removed and added whole, because words that happen to be in both
    help nobody; so are very long ones. White space alone, between two changes, is not kept.

    Args:
        before: The earlier text.
        after: The later one.

    Example:
        >>> word_diff("List used cars.", "List all used cars.")
        (('same', 'List'), ('added', ' all'), ('same', ' used cars.'))
    """
    if before == after:
        return (("same", before),) if before else ()
    old, new = pieces(before), pieces(after)
    if max(len(old), len(new)) > _MOST_PIECES or _likeness(old, new) < ALIKE:
        return tuple(_changed(before, after))
    found: list[tuple[Part, str]] = []
    gone, come = "", ""
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left, right = "".join(old[i1:i2]), "".join(new[j1:j2])
        is_gap = not left.strip() and (gone or come) and i2 < len(old)
        if kind == "equal" and not is_gap:
            found += [*_changed(gone, come), ("same", left)]
            gone, come = "", ""
        else:
            gone, come = gone + left, come + right
    return (*found, *_changed(gone, come))


def _changed(old: str, new: str) -> Iterator[tuple[Part, str]]:
    if old:
        yield "removed", old
    if new:
        yield "added", new


def _likeness(old: Sequence[str], new: Sequence[str]) -> float:
    """The share of words that two texts have in common in order, from 0 to 1."""
    mine, yours = (
        [piece for piece in side[:_MOST_PIECES] if is_word(piece)] for side in (old, new)
    )
    return SequenceMatcher(None, mine, yours, autojunk=False).ratio()


def marked(parts: Words) -> str:
    """A difference in one text, as GNU wdiff marks it: added ``{+ +}``, removed ``[- -]``."""
    ends = {"same": ("", ""), "added": ("{+", "+}"), "removed": ("[-", "-]")}
    return "".join(f"{ends[kind][0]}{text}{ends[kind][1]}" for kind, text in parts)
