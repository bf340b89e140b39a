"""Cutting a request into the parts that may each want a tool of their own."""

from __future__ import annotations

import re

from agentkit.retrieval.words import terms

_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|(?<=[\u3002\uff01\uff1f\uff1b])"
    r"|\b(?:and then|then|also|finally|next|lastly|after that|afterwards|additionally|furthermore"
    r"|moreover)\b,?\s*",
    re.IGNORECASE,
)

_MOST = 8
_FEWEST_TERMS = 2
_LONGEST_END = 4_000
"""Characters of a text that are read at either end: in a very long one the request stands before
or behind what was pasted in."""


def clauses(text: str) -> tuple[str, ...]:
    """The sentences of a text, cut again at words such as *then* and *also*.

    Not a grammar: a clause that wants no tool does little harm, because ranking weighs a clause by
    how well some tool fits it. Cutting at every *and* or comma was tried and finds no more.

    Returns:
        At most eight, each with at least two different search terms; none when there is only one.

    Example:
        >>> clauses("Book a table in Rome. Then mail the address to Ann. Thanks!")
        ('Book a table in Rome.', 'mail the address to Ann.')
        >>> clauses("Book a table in Rome.")
        ()
    """
    parts = [part.strip() for part in _END.split(text)]
    found = [part for part in parts if part and len(set(terms(part))) >= _FEWEST_TERMS]
    return tuple(found[:_MOST]) if len(found) > 1 else ()


def both_ends(text: str) -> str:
    """The text without its middle when it is longer than eight thousand characters.

    Example:
        >>> len(both_ends("x" * 100_000)), both_ends("short")
        (8001, 'short')
    """
    if len(text) <= 2 * _LONGEST_END:
        return text
    return f"{text[:_LONGEST_END]}\n{text[-_LONGEST_END:]}"
