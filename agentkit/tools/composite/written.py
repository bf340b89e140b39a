"""How names that Python can not write are written in the text of a composite."""

from __future__ import annotations

from collections.abc import Iterable
from keyword import iskeyword
from unicodedata import normalize

from agentkit.tools.composite.language import RESERVED


def written(name: str) -> str:
    """An identifier for any name: ``_`` stands for each character that Python does not allow.

    A name that starts with a digit gets a ``_`` in front; a keyword, or a function that the
    language knows, one behind.

    Example:
        >>> written("get user"), written("3d-plot"), written("from"), written("weather_now")
        ('get_user', '_3d_plot', 'from_', 'weather_now')
    """
    plain = normalize("NFKC", name)
    if not plain.isidentifier():
        plain = "".join(char if f"_{char}".isidentifier() else "_" for char in plain)
        plain = plain if plain.isidentifier() else f"_{plain}"
    return f"{plain}_" if iskeyword(plain) or plain in RESERVED else plain


def writable(name: str) -> bool:
    """Whether a variable, parameter or child of that name is written as it is."""
    return written(name) == name


def dotted(name: str) -> bool:
    """Whether a name is two or more identifiers with dots between, such as ``weather.now``."""
    head, *rest = name.split(".")
    parts = (head, *rest)
    return (
        bool(rest) and writable(head) and all(p.isidentifier() and not iskeyword(p) for p in parts)
    )


def spelled(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that ``text`` can stand for."""
    return tuple(name for name in names if written(name) == text)
