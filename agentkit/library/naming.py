"""Telling apart tools that claim one name."""

from __future__ import annotations

from collections.abc import Container


def distinct_name(name: str, taken: Container[str]) -> str:
    """``name`` if it is free, else the first free one of ``name__2``, ``name__3``, ...

    A counter rather than a digest: a model has to write the name, people read it, and providers
    allow 64 characters. The result depends only on what is taken, so importing the same source in
    the same order gives the same names.

    Example:
        >>> distinct_name("add", {"sub"}), distinct_name("add", {"add", "add__2"})
        ('add', 'add__3')
    """
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}__{number}", number + 1
    return candidate
