"""Patterns of learned rules: portable, and quick on any text.

A learned pattern comes from a model or a file and is matched against what another model wrote, so
it is held to a small language that every reader of JSON Schema reads alike, and to a bound on the
ways in which it can match.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agentkit.tools.patterns import (
    LENGTH_LIMIT,
    NESTED_LIMIT,
    has_nested_repeat,
    is_compilable,
)

MAX_LENGTH = 200
"""Longest pattern, in characters."""

MAX_WAYS = 1_000_000
"""Most ways to divide a text among the repetitions of a pattern."""

_UNPORTABLE = re.compile(r"\(\?(?!:)|\{,|[*+?}]\+|\\[1-9AzZbBkpPGgNuUxc0]")
_SET_OPERATION = re.compile(r"^\[|--|&&|\|\||~~")  # inside [...], where Python warns of them
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<repeat>[*+?]|\{\d*,?\d*\})|.", re.DOTALL)


def anchored(pattern: str) -> str:
    """A pattern that the whole text matches, in the words of JSON Schema, which searches.

    Example:
        >>> anchored("[A-Z]{2}"), anchored("^[A-Z]{2}$"), anchored("EUR|USD")
        ('^[A-Z]{2}$', '^[A-Z]{2}$', '^(?:EUR|USD)$')
    """
    inside = _bare(pattern)
    return f"^(?:{inside})$" if "|" in inside else f"^{inside}$"


def matches_whole(pattern: str, text: str) -> bool:
    """Whether the whole text matches, or is too long to find out (``agentkit.tools.patterns``)."""
    if len(text) > LENGTH_LIMIT or (len(text) > NESTED_LIMIT and has_nested_repeat(pattern)):
        return True
    return re.fullmatch(_bare(pattern), text) is not None


def _bare(pattern: str) -> str:
    """Without anchors at the ends: they say nothing of a text that is matched as a whole."""
    inside = pattern.removeprefix("^")
    is_anchor = inside.endswith("$") and not _is_escaped(inside)
    return inside[:-1] if is_anchor else inside


def _is_escaped(pattern: str) -> bool:
    """Whether the last character has an odd number of backslashes before it."""
    before = pattern[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


@lru_cache(maxsize=512)  # asked at every call, about the same few patterns
def why_unsafe(pattern: str) -> str:
    r"""Why a pattern is not fit for a rule; empty when it is.

    Example:
        >>> why_unsafe(r"[A-Z]{2}\d{1,6}")
        ''
        >>> why_unsafe("(a+)+")
        'its repetitions can divide a text in too many ways; give them upper bounds'
    """
    if len(pattern) > MAX_LENGTH:
        return f"it has {len(pattern)} characters, more than {MAX_LENGTH}"
    if not is_compilable(pattern) or not is_compilable(_bare(pattern)):
        return "it is no regular expression"
    if found := _UNPORTABLE.search(pattern) or _set_operation(pattern):
        return f"it uses {found[0]!r}, which not every reader of JSON Schema knows"
    if _ways(pattern) > MAX_WAYS:
        return "its repetitions can divide a text in too many ways; give them upper bounds"
    return ""


def _set_operation(pattern: str) -> re.Match[str] | None:
    """What some readers take for an operation on sets of characters, and others for characters."""
    for token in _TOKEN.finditer(pattern):
        if len(token[0]) > 1 and token[0].startswith("["):
            inside = re.sub(r"\\.", "_", token[0][1:-1].removeprefix("^"))
            if found := _SET_OPERATION.search(inside):
                return found
    return None


class _Group:
    """How many ways there are through the part of a pattern that was read of one group."""

    __slots__ = ("_before", "_earlier", "_last")

    def __init__(self) -> None:
        self._earlier = 0  # alternatives that are complete
        self._before = 1  # the present alternative up to its last element
        self._last = 1  # its last element, which may turn out to be repeated

    @property
    def ways(self) -> int:
        return _capped(self._earlier + self._before * self._last)

    def add(self, ways: int) -> None:
        """A further element."""
        self._before, self._last = _capped(self._before * self._last), ways

    def repeat(self, quantifier: str) -> None:
        """The last element is repeated."""
        least, most = _numbers(quantifier)
        if self._last > 1 and most > MAX_WAYS.bit_length():
            self._last = MAX_WAYS + 1
        else:
            self._last = _capped((most - least + 1) * self._last**most)

    def end_alternative(self) -> None:
        """The present alternative is complete."""
        self._earlier, self._before, self._last = self.ways, 1, 1


def _ways(pattern: str) -> int:
    """A bound on the ways in which a text can be divided among the parts of a pattern."""
    groups = [_Group()]
    for match in _TOKEN.finditer(pattern.replace("(?:", "(")):
        part = match[0]
        if part == "(":
            groups.append(_Group())
        elif part == ")" and len(groups) > 1:
            inner = groups.pop()
            groups[-1].add(inner.ways)
        elif part == "|":
            groups[-1].end_alternative()
        elif match["repeat"]:
            groups[-1].repeat(part)
        else:
            groups[-1].add(1)
    return groups[0].ways


def _capped(ways: int) -> int:
    return min(ways, MAX_WAYS + 1)


def _numbers(quantifier: str) -> tuple[int, int]:
    """The least and the greatest number of repetitions that a quantifier allows."""
    if quantifier in {"*", "+", "?"}:
        return int(quantifier == "+"), 1 if quantifier == "?" else LENGTH_LIMIT
    least, comma, most = quantifier[1:-1].partition(",")
    low = int(least or 0)
    return low, max(low, int(most) if most else LENGTH_LIMIT if comma else low)
