"""Characters in a text that nobody sees, but a model reads."""

from __future__ import annotations

import unicodedata

_JOINERS = {"\u200c", "\u200d"}
_KEPT_CONTROLS = {"\t", "\n", "\r"}


def invisible(text: str) -> tuple[str, ...]:
    r"""The characters of ``text`` that nobody sees, each once, in order.

    Control characters, zero-width spaces, marks of text direction, tag characters. Joiners count
    only between ASCII characters: Persian, Indic scripts and emoji need them.

    Example:
        >>> invisible("Delete" + chr(0x200B) + " a file")
        ('\u200b',)
    """
    if text.isascii() and text.isprintable():
        return ()
    found = (char for at, char in enumerate(text) if _is_invisible(text, at, char))
    return tuple(dict.fromkeys(found))


def _is_invisible(text: str, at: int, char: str) -> bool:
    category = unicodedata.category(char)
    if category == "Cc":
        return char not in _KEPT_CONTROLS
    if category != "Cf":
        return False
    around = text[max(at - 1, 0) : at] + text[at + 1 : at + 2]
    return around.isascii() if char in _JOINERS else not _is_script_mark(char)


def _is_script_mark(char: str) -> bool:
    """Whether a format character belongs to a script (Arabic number signs and the like)."""
    return "ARABIC" in unicodedata.name(char, "") or "SYRIAC" in unicodedata.name(char, "")
