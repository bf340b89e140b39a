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
