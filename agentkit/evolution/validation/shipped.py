"""Word lists and patterns that come with the package, in ``phrases/*.txt``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def shipped_lines(name: str) -> list[str]:
    """The lines of ``phrases/<name>.txt`` that are neither empty nor comments (``# ...``)."""
    file = files(__package__ or "").joinpath("phrases", f"{name}.txt")
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@cache
def shipped_sections(name: str) -> Mapping[str, list[str]]:
    """The lines of a file by the ``[section]`` that they stand below; for those above it is empty.

    Example:
        >>> list(shipped_sections("units"))
        ['time', 'temperature', 'length', 'mass', 'share', 'money', 'data']
    """
    sections: dict[str, list[str]] = {}
    section = ""
    for line in shipped_lines(name):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        else:
            sections.setdefault(section, []).append(line)
    return sections
