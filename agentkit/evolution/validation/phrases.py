"""The words and patterns that checks look for: data in ``phrases/``, compiled when first asked for.

A line of a file is a pattern over folded text (``texts.folded``: ``ü`` stands there as ``u``), a
comment (``# ...``), the ``[name]`` of a section, or ``@name pattern``, which the lines below it use
as ``<name>``. Sections that are called ``words of ...`` hold words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

_PART = re.compile(r"<(\w+)>")


@cache
def sections(name: str) -> Mapping[str, tuple[str, ...]]:
    """The lines of ``phrases/<name>.txt`` by section; those above the first one have no name.

    Example:
        >>> list(sections("units"))
        ['time', 'temperature', 'length', 'mass', 'share', 'money', 'data']
    """
    file = files(__package__ or "").joinpath("phrases", f"{name}.txt")
    found: dict[str, list[str]] = {}
    parts: dict[str, str] = {}
    section = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]") and "|" not in line:
            section = line[1:-1]
        elif line.startswith("@"):
            part, _, pattern = line[1:].partition(" ")
            parts[part] = _filled(pattern, parts)
        elif line and not line.startswith("#"):
            found.setdefault(section, []).append(_filled(line, parts))
    return {section: tuple(lines) for section, lines in found.items()}


def _filled(line: str, parts: Mapping[str, str]) -> str:
    return _PART.sub(lambda found: parts.get(found[1], found[0]), line)


@cache
def words(name: str, section: str = "") -> frozenset[str]:
    """The words of a section of a file."""
    return frozenset(" ".join(sections(name).get(section, ())).split())


@cache
def pattern(name: str, section: str = "") -> re.Pattern[str]:
    """One pattern of all lines of a section."""
    return re.compile("|".join(sections(name)[section]))


@cache
def patterns(name: str, code: str = "") -> Mapping[str, re.Pattern[str]]:
    """The patterns of the sections ``code``, or ``code.kind`` by kind; of all by section."""
    kinds = {
        section: section.partition(".")[2] if code else section
        for section in sections(name)
        if not code or section.partition(".")[0] == code
    }
    return {kind: pattern(name, section) for section, kind in kinds.items()}


def matches(looked_for: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Every match, also one that begins inside another: an excused one must hide nothing.

    Example:
        >>> [found.group() for found in matches(re.compile("a.b|b"), "a b")]
        ['a b', 'b']
    """
    at = 0
    while (found := looked_for.search(text, at)) is not None:
        yield found
        at = found.start() + 1
