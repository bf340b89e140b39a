"""The name of a tool's file: readable, the same everywhere, and never that of another tool."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_AS_IT_IS = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,98}[a-z0-9_])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")  # on Windows, with any ending
_LONGEST_STEM = 60
_MOST_BYTES = 120


def file_stem(tool_name: str) -> str:
    """The name of a tool's file, without its ending.

    A name in small letters that every file system takes stands for itself. Any other is made
    readable, and the first digits of its digest tell it apart: from names that differ in case,
    accents or signs alone, also where the file system does not see the difference.

    Example:
        >>> file_stem("get_weather")
        'get_weather'
        >>> file_stem("Get Weather/v2"), file_stem("CON")
        ('get-weather-v2--a1f304ca2831', 'con--a3dbc4b644a9')
    """
    is_safe = _AS_IT_IS.fullmatch(tool_name) and not _RESERVED.fullmatch(tool_name)
    if is_safe and "--" not in tool_name and ".." not in tool_name:
        return tool_name
    return f"{_readable(tool_name)}--{digest_suffix(tool_name)}"


def digest_suffix(tool_name: str) -> str:
    """What tells apart names whose readable parts are the same."""
    return hashlib.sha256(tool_name.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def _readable(tool_name: str) -> str:
    """Letters and digits in the form that all file systems keep, and ``-`` for all else."""
    plain = unicodedata.normalize("NFKD", tool_name[:1_000]).casefold()
    plain = unicodedata.normalize("NFKD", plain)
    letters = "".join(
        "" if unicodedata.combining(one) else one if one.isalnum() or one == "_" else "-"
        for one in plain
    )
    stem = re.sub("-+", "-", letters).strip("-")[:_LONGEST_STEM]
    stem = stem.encode()[:_MOST_BYTES].decode(errors="ignore")
    return stem.strip("-") or "tool"
