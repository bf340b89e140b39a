r"""Text that PostgreSQL takes: it has neither the character NUL nor halves of surrogate pairs."""

from __future__ import annotations

from hashlib import sha256

_SIGN = "\u2400"
"""The sign for NUL. It stands before what it means: ``0`` for NUL, itself for itself."""

_MOST_BYTES = 1000
"""Of a text that an index finds; a B-tree takes 2,704."""

_SHOWN = 200


def storable(text: str) -> str:
    r"""A text as the tables hold it; no two texts without surrogates become one.

    Half a surrogate pair, which a model may write, becomes ``\udXXX`` and stays so.

    Example:
        >>> storable("plain"), restored(storable("a\0b")) == "a\0b"
        ('plain', True)
    """
    if _SIGN in text or "\0" in text:
        text = text.replace(_SIGN, _SIGN * 2).replace("\0", f"{_SIGN}0")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def restored(text: str) -> str:
    """The inverse of ``storable``."""
    if _SIGN not in text:
        return text
    parts = text.split(_SIGN * 2)
    return _SIGN.join(part.replace(f"{_SIGN}0", "\0") for part in parts)


def key(text: str) -> str:
    """A text as an index holds it: a long one is cut and told apart by its digest.

    Example:
        >>> key("weather"), len(key("x" * 5000))
        ('weather', 266)
    """
    stored = storable(text)
    if len(stored) * 4 <= _MOST_BYTES or len(stored.encode()) <= _MOST_BYTES:
        return stored
    return f"{stored[:_SHOWN]}{_SIGN}#{sha256(stored.encode()).hexdigest()}"


def is_cut(key: str) -> bool:
    """Whether a key is not the whole text."""
    return f"{_SIGN}#" in key.replace(_SIGN * 2, "")
