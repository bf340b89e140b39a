"""What a word of a text is, in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Literal

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
