"""Patterns of learned rules: small, and read alike by every reader of JSON Schema."""

from __future__ import annotations

import re
from functools import lru_cache

from agentkit.tools.patterns import MAX_STEPS, pattern_holds, pattern_steps, why_unusable

MAX_LENGTH = 200
"""Longest pattern, in characters."""

_UNPORTABLE = re.compile(r"\(\?(?!:)|\{,|[*+?}]\+|\\[1-9AzZbBkpPGgNuUxc0]")
_SET_OPERATION = re.compile(r"^\[|--|&&|\|\||~~")  # inside [...], where Python warns of them
_TOKEN = re.compile(r"\\.|\[\^?\]?+(?:\\.|[^\]\\])*+\]|.", re.DOTALL)


def anchored(pattern: str) -> str:
    """A pattern that the whole text matches, in the words of JSON Schema, which searches.

    Example:
        >>> anchored("[A-Z]{2}"), anchored("^[A-Z]{2}$"), anchored("EUR|USD")
        ('^[A-Z]{2}$', '^[A-Z]{2}$', '^(?:EUR|USD)$')
    """
    inside = _bare(pattern)
    return f"^(?:{inside})$" if "|" in inside else f"^{inside}$"


def matches_whole(pattern: str, text: str) -> bool:
    """Whether the whole text matches, or is too long to find out."""
    whole = anchored(pattern)
    return pattern_steps(whole, text) > MAX_STEPS or pattern_holds(whole, text)


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
        >>> why_unsafe("(?=a)a")
        "it uses '(?', which not every reader of JSON Schema knows"
    """
    if len(pattern) > MAX_LENGTH:
        return f"it has {len(pattern)} characters, more than {MAX_LENGTH}"
    if found := _UNPORTABLE.search(pattern) or _set_operation(pattern):
        return f"it uses {found[0]!r}, which not every reader of JSON Schema knows"
    why = why_unusable(pattern) or why_unusable(anchored(pattern))
    return f"it {why}" if why else ""


def _set_operation(pattern: str) -> re.Match[str] | None:
    """What some readers take for an operation on sets of characters, and others for characters."""
    for token in _TOKEN.finditer(pattern):
        if len(token[0]) > 1 and token[0].startswith("["):
            inside = re.sub(r"\\.", "_", token[0][1:-1].removeprefix("^"))
            if found := _SET_OPERATION.search(inside):
                return found
    return None
