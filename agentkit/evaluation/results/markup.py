"""HTML that is escaped unless it was made here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = frozenset({"meta", "br"})


class Markup(str):
    """Text that is HTML already. Only ``element`` and constants of this package make it."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | Iterable[Child]"


def element(name: str, /, *children: Child, **attributes: str | float | None) -> Markup:
    """An element; children and attributes are escaped unless they are ``Markup``.

    Args:
        name: The tag.
        children: What it holds: texts, elements, or sequences of these.
        attributes: Its attributes; ``class_`` is ``class``, other underscores are hyphens, None
            leaves one out.
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{joined(children)}</{name}>")


def joined(children: Child) -> Markup:
    """Children one after the other, escaped unless they are ``Markup``."""
    if isinstance(children, Markup):
        return children
    if isinstance(children, str):
        return Markup(escape(children))
    return Markup("".join(joined(child) for child in children))


def _attribute(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
