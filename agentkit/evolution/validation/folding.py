"""Texts without what does not change how they read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_ACCENTS = re.compile(r"[\u0300-\u036f]")
_INVISIBLE = re.compile(
    r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufe00-\ufe0f\U000e0000-\U000e01ef]"
)
_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。\uff01\uff1f\uff1b])|\n+")
_FIRST_EAST_ASIAN = 0x2E80
_SPACE = re.compile(r"\s+")


def folded(text: str) -> str:
    """The text without case, accents, presentation forms and invisible characters.

    Example:
        >>> folded("Ⅷ  Überprüfung der ﬁnalen Datei")
        'viii uberprufung der finalen datei'
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("\u2018", "'")
        text = text.replace("“", '"').replace("”", '"')
    return _SPACE.sub(" ", text.casefold())


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, each folded.

    Example:
        >>> list(sentences("Price in euros. Tax included."))
        ['price in euros.', 'tax included.']
    """
    for part in _END.split(text):
        if part.strip():
            yield folded(part).strip()


def stands_in(word: str, text: str) -> bool:
    """Whether a word stands in a text as a word; in scripts without spaces, anywhere.

    Example:
        >>> stands_in("days", "how many days."), stands_in("day", "how many days.")
        (True, False)
    """
    if not word.isascii():
        return word in text
    start = text.find(word) if word else -1
    while start >= 0:
        end = start + len(word)
        if not (_goes_on(text[max(start - 1, 0) : start]) or _goes_on(text[end : end + 1])):
            return True
        start = text.find(word, end)
    return False


def _goes_on(char: str) -> bool:
    """Whether a word goes on with this character; Chinese needs no space beside a Latin word."""
    return char == "_" or (char.isalnum() and ord(char) < _FIRST_EAST_ASIAN)
