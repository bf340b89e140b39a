"""Marks around material that a model reads and must not take for instructions."""

from __future__ import annotations

import hashlib

_MARK_DIGITS = 20


def mark_for(text: str) -> str:
    """A mark that does not occur in a text, and that its author could not have put there.

    Args:
        text: The material.
    """
    mark = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_MARK_DIGITS]
    while mark in text:  # out of reach for an author, and yet it costs nothing to make sure
        mark = hashlib.sha256(mark.encode()).hexdigest()[:_MARK_DIGITS]
    return mark
