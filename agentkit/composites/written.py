"""How names that Python can not write are written in the text of a composite."""

from __future__ import annotations

from collections.abc import Iterable
from keyword import iskeyword
from unicodedata import normalize

from agentkit.composites.language import RESERVED


def written(name: str) -> str:
    """An identifier for any name: ``_`` stands for each character that Python does not allow.

    A name that starts with a digit gets a ``_`` in front; a keyword, or a function that the
    language knows, one behind.

    Example:
        >>> written("get user"), written("3d-plot"), written("from"), written("weather_now")
        ('get_user', '_3d_plot', 'from_', 'weather_now')
    """
    if is_plain(name):
        return name
    plain = normalize("NFKC", name)
    if not plain.isidentifier():
        plain = "".join(char if f"_{char}".isidentifier() else "_" for char in plain)
        plain = plain if plain.isidentifier() else f"_{plain}"
    return f"{plain}_" if iskeyword(plain) or plain in RESERVED else plain


def is_plain(name: str) -> bool:
    """Whether a name is an ASCII identifier that means nothing else in the language."""
    is_free = name not in RESERVED and not iskeyword(name)
    return is_free and name.isascii() and name.isidentifier()


def is_identifier(name: str) -> bool:
    """Whether Python reads ``name`` as a name, and as that name."""
    return name.isidentifier() and not iskeyword(name) and normalize("NFKC", name) == name


def is_dotted(name: str) -> bool:
    """Whether a name is two or more identifiers with dots between, such as ``weather.now``."""
    if "." not in name:
        return False
    head, *rest = name.split(".")
    return written(head) == head and all(map(is_identifier, rest))


def spelled(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of ``names`` that ``text`` can stand for."""
    return tuple(name for name in names if written(name) == text)
