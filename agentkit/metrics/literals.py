"""What Java and JavaScript literals have in common. What is no literal stays the text it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any


class NumberForm:
    """A spelling of numbers.

    Args:
        pattern: What such a number looks like.
        value: Gives the number.
        suffix: How many characters at the end only tell the type.
    """

    __slots__ = ("_pattern", "_suffix", "_value")

    def __init__(self, pattern: str, value: Callable[[str], Any], suffix: int = 0) -> None:
        self._pattern = re.compile(pattern)
        self._value = value
        self._suffix = suffix

    def read(self, text: str) -> Any:
        """The number; the text itself when it is none of this form."""
        spelled = text.removesuffix("\n")  # as upstream, whose `$` also stands before a line break
        if self._pattern.fullmatch(spelled) is None:
            return text
        try:
            return self._value(spelled[: len(spelled) - self._suffix])
        except ValueError:  # thousands of digits
            return text


def read_boolean(text: str) -> Any:
    """``true`` or ``false``; the text itself when it is neither."""
    return {"true": True, "false": False}.get(text, text)


def python_number(text: str) -> Any:
    """An integer or else a float, in any spelling that Python reads; the text itself if none."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def between(text: str, start: int, end: str) -> str | None:
    """What stands from ``start`` to the first ``end``; None when that is not on one line."""
    stop = text.find(end, start)
    if stop < 0:
        return None
    inside = text[start:stop]
    return None if "\n" in inside else inside
