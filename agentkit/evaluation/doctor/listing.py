"""Putting names and values into a sentence."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 4
_LONGEST = 60


def listed(names: Sequence[str], *, shown: int = _SHOWN) -> str:
    """``a, b``; a long list is cut: ``a, b, c, d and 12 more``."""
    text = ", ".join(names[:shown])
    return f"{text} and {len(names) - shown:,} more" if len(names) > shown else text


def quoted(text: str, *, longest: int = _LONGEST) -> str:
    """``'text'`` on one line, its middle left out when it is long."""
    line = " ".join(text.split())
    if len(line) > longest:
        half = (longest - 3) // 2
        line = f"{line[:half].rstrip()} ... {line[-half:].lstrip()}"
    return repr(line)
