"""The regular expressions that every engine's grammar reads the same way."""

from __future__ import annotations

import re
from typing import Any

from agentkit.tools.patterns import is_compilable

_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}
_PUNCTUATION = frozenset(".-/+*?()[]{}|^$,:;@#%&=~!_ ")
_SPECIAL = frozenset("^$.[]()|{}*+?")
_TOKEN = re.compile(
    r"\\(?P<escaped>.)"
    r"|\[(?P<members>(?!\^)(?:\\.|[^\]\\\"\[])+)\]"
    r"|(?P<group>\((?:\?:)?(?!\?)|\)|\|)"
    r"|(?P<repeat>(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})(?![*+?{]))"
    r"|(?P<literal>[A-Za-z0-9 _\-:,;@#%&=~!'<>/])",
    re.ASCII,
)


def plain_pattern(pattern: Any) -> str | None:
    r"""``pattern`` in the common language of the engines, or None when it is beyond that.

    It has to be anchored at both ends and made of literals, positive classes, groups and
    repetitions. A dot or a negated class is refused: some converters let it match a quotation
    mark, which breaks the JSON around it. ``\d`` and ``\w`` become the classes they stand for
    (the ASCII part of them, so that the result is narrower).

    Example:
        >>> plain_pattern(r"^\d{4}-[A-Z]\w$")
        '^[0-9]{4}-[A-Z][A-Za-z0-9_]$'
        >>> plain_pattern("^a.c$") is None
        True
    """
    if not isinstance(pattern, str) or not re.fullmatch(r"\^.*[^\\]\$", pattern):
        return None
    body, position, parts = pattern[1:-1], 0, []
    while position < len(body):
        match = _TOKEN.match(body, position)
        part = _plain(match) if match else None
        if match is None or part is None:
            return None
        parts.append(part)
        position = match.end()
    plain = f"^{''.join(parts)}$"
    return plain if is_compilable(plain) else None


def _plain(match: re.Match[str]) -> str | None:
    if match["escaped"]:
        return _plain_escape(match["escaped"])
    if match["members"]:
        members = re.sub(r"\\(.)", _plain_member, match["members"])
        return None if "\\" in members else f"[{members}]"
    return "(" if match[0] == "(?:" else match[0]


def _plain_escape(character: str) -> str | None:
    if character in _CLASSES:
        return f"[{_CLASSES[character]}]"
    if character in _SPECIAL:
        return f"\\{character}"
    return character if character in _PUNCTUATION else None


def _plain_member(match: re.Match[str]) -> str:
    """An escape inside a class; one that has to stay an escape makes the class refused."""
    character = match[1]
    if character in _CLASSES:
        return _CLASSES[character]
    return character if character in _PUNCTUATION - {"-", "]", "[", "^"} else match[0]
