"""Primitives on text."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agentkit.errors import ModelRetry
from agentkit.testing.primitives.common import LIMITS, PURE, worked
from agentkit.tools.decorator import tool

_TAGS = ("text",)


@tool(
    effects=PURE,
    tags=_TAGS,
    post=("result == text.lower()",),
    complexity="O(n)",
    examples=(
        worked("oslo", "Write OSLO in small letters.", text="OSLO"),
        worked("grüße 3", text="Grüße 3"),
        worked("", text=""),
    ),
)
def to_lower(text: str) -> str:
    """A text in small letters, such as to compare two spellings.

    Args:
        text: Any text.

    Returns:
        The same text with every letter small.
    """
    return text.lower()


@tool(
    effects=PURE,
    tags=_TAGS,
    post=("result == text.strip()", "result in text"),
    complexity="O(n)",
    examples=(
        worked("Ada Lovelace", "Clean up the name.", text="  Ada Lovelace \n"),
        worked("a b", text="a b"),
        worked("", text="   "),
    ),
)
def trim(text: str) -> str:
    """A text without the white space around it.

    Args:
        text: Any text.

    Returns:
        The text from its first to its last visible character.
    """
    return text.strip()


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(separator) > 0",),
    post=("separator.join(result) == text", "len(result) == text.count(separator) + 1"),
    complexity="O(n)",
    examples=(
        worked(
            ["red", "green", "blue"],
            "Which colours are in red,green,blue?",
            text="red,green,blue",
            separator=",",
        ),
        worked(["a", "", "b"], text="a--b", separator="-"),
        worked([""], text="", separator=","),
    ),
)
def split_text(text: str, separator: Annotated[str, Field(min_length=1)]) -> list[str]:
    """The parts of a text between separators. join_text is the way back.

    Args:
        text: Any text.
        separator: What stands between the parts; at least one character.

    Returns:
        The parts in order, empty ones included.

    Raises:
        ModelRetry: The separator is empty, or there are more than 10,000 parts.
    """
    _check_given(separator, "separator")
    if text.count(separator) >= LIMITS.collection_items:
        raise ModelRetry(f"more than {LIMITS.collection_items:,} parts; shorten the text")
    return text.split(separator)


@tool(
    effects=PURE,
    tags=_TAGS,
    post=("result == separator.join(parts)",),
    complexity="O(n)",
    examples=(
        worked(
            "red, green, blue",
            "List red, green and blue with commas.",
            parts=["red", "green", "blue"],
            separator=", ",
        ),
        worked("ab", parts=["a", "b"], separator=""),
        worked("", parts=[], separator=", "),
    ),
)
def join_text(parts: list[str], separator: str) -> str:
    """One text from many. split_text is the way back.

    Args:
        parts: Texts in order.
        separator: What to put between two of them; may be empty.

    Returns:
        The parts with the separator between them.

    Raises:
        ModelRetry: The text would be longer than 100,000 characters.
    """
    _check_length(sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0))
    return separator.join(parts)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(old) > 0",),
    post=("result == text.replace(old, new)", "old in new or old not in text or result != text"),
    complexity="O(n)",
    examples=(
        worked(
            "1234.50",
            "Take the thousands separators out of 1,234.50.",
            text="1,234.50",
            old=",",
            new="",
        ),
        worked("baba", text="caca", old="c", new="b"),
        worked("abc", text="abc", old="x", new="y"),
    ),
)
def replace_text(text: str, old: Annotated[str, Field(min_length=1)], new: str) -> str:
    """A text in which each occurrence of one part is replaced by another.

    Args:
        text: Any text.
        old: What to look for; at least one character.
        new: What to put in its place; empty to take it out.

    Returns:
        The changed text; the same text when there is nothing to replace.

    Raises:
        ModelRetry: old is empty, or the text would be longer than 100,000 characters.
    """
    _check_given(old, "old")
    _check_length(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


@tool(
    effects=PURE,
    tags=_TAGS,
    post=("result == (part.lower() in text.lower() if ignore_case else part in text)",),
    complexity="O(n)",
    examples=(
        worked(
            True,
            "Does 'Final INVOICE 7' mention an invoice?",
            text="Final INVOICE 7",
            part="invoice",
            ignore_case=True,
        ),
        worked(False, text="Final INVOICE 7", part="invoice"),
        worked(True, text="", part=""),
    ),
)
def contains_text(text: str, part: str, ignore_case: bool = False) -> bool:  # noqa: FBT001, FBT002 - a tool's parameters are called by name
    """Whether one text occurs in another.

    Args:
        text: Where to look.
        part: What to look for; the empty text is in every text.
        ignore_case: Whether capital and small letters are the same.

    Returns:
        true when it occurs.
    """
    return part.lower() in text.lower() if ignore_case else part in text


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("start >= 0", "length >= 0"),
    post=("len(result) <= length", "result == text[start : start + length]"),
    complexity="O(length)",
    examples=(
        worked("2026", "What is the year in 2026-03-02?", text="2026-03-02", start=0, length=4),
        worked("03", text="2026-03-02", start=5, length=2),
        worked("c", text="abc", start=2, length=10),
        worked("", text="abc", start=7, length=2),
    ),
)
def substring(
    text: str, start: Annotated[int, Field(ge=0)], length: Annotated[int, Field(ge=0)]
) -> str:
    """Part of a text by place and length.

    Args:
        text: Any text.
        start: Place of the first character, from 0.
        length: How many characters; fewer come back when the text ends before.

    Returns:
        The characters from that place on.

    Raises:
        ModelRetry: start or length is negative.
    """
    if start < 0 or length < 0:
        raise ModelRetry(f"start is {start} and length is {length}; give 0 or more for both")
    return text[start : start + length]


def _check_given(text: str, parameter: str) -> None:
    if not text:
        raise ModelRetry(f"{parameter} is empty; give at least one character")


def _check_length(length: int) -> None:
    if length > LIMITS.string_chars:
        raise ModelRetry(
            f"the text would have {length:,} characters, more than {LIMITS.string_chars:,}; "
            "work on a shorter one"
        )


STRINGS = (to_lower, trim, split_text, join_text, replace_text, contains_text, substring)
