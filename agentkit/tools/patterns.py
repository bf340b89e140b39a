"""Regular expressions in schemas: compiled with care, because both sides are foreign.

A pattern comes from whoever wrote the definition and the text from a model, and Python's ``re``
has no time limit. Two bounds keep a check short:

* A pattern that repeats a group which itself repeats (``(a+)+``) can take time exponential in the
  text. It is applied to texts of at most ``NESTED_LIMIT`` characters.
* Any pattern is applied to texts of at most ``LENGTH_LIMIT`` characters.

Beyond its bound a pattern counts as matched: it is then a hint to the model, not a gate.
Alternatives that overlap (``(a|a)*``) are not detected.
"""

from __future__ import annotations

import re
import warnings

NESTED_LIMIT = 22
"""Longest text, in characters, that a pattern with nested repetition is applied to."""

LENGTH_LIMIT = 10_000
"""Longest text, in characters, that any pattern is applied to."""

_REPEATS = re.compile(r"[*+]|\?|\{\d*,?\d*\}")
_OPEN_ENDED = re.compile(r"[*+]|\{\d*,\d*\}")


def is_compilable(pattern: str) -> bool:
    """Whether Python can compile ``pattern``; ECMA 262 has syntax that it can not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set" is about a future version
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def pattern_holds(pattern: str, text: str) -> bool:
    """Whether ``pattern`` is found in ``text``, or ``text`` is too long to find out safely.

    Args:
        pattern: A compilable regular expression; not anchored, as in JSON Schema.
        text: The value.
    """
    if len(text) > LENGTH_LIMIT or (len(text) > NESTED_LIMIT and has_nested_repeat(pattern)):
        return True
    return re.search(pattern, text) is not None


def has_nested_repeat(pattern: str) -> bool:
    r"""Whether a group that holds a repetition is itself repeated without a fixed count.

    Example:
        >>> has_nested_repeat(r"^(\d+,)*$"), has_nested_repeat(r"^[a-z]+(ab){2,3}$")
        (True, False)
    """
    repeats_in_group = [False]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "\\":
            position += 1
        elif character == "[":
            position = _after_class(pattern, position)
        elif character == "(":
            repeats_in_group.append(False)
            position += pattern[position : position + 1] == "?"  # "(?:" opens, it repeats nothing
        elif character == ")" and len(repeats_in_group) > 1:
            inner = repeats_in_group.pop()
            if inner and _OPEN_ENDED.match(pattern, position):
                return True
            repeats_in_group[-1] |= inner
        elif _REPEATS.match(pattern, position - 1):
            repeats_in_group[-1] = True
    return False


def _after_class(pattern: str, position: int) -> int:
    """The position behind a character class whose first character is at ``position``."""
    if pattern[position : position + 1] == "^":
        position += 1
    if pattern[position : position + 1] == "]":  # a leading bracket is a member
        position += 1
    while position < len(pattern) and pattern[position] != "]":
        position += 2 if pattern[position] == "\\" else 1
    return position + 1
