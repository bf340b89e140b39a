"""Names of tools and parameters as Python identifiers."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

_FOREIGN = re.compile(r"[^0-9a-zA-Z_]")


def is_python_name(name: str) -> bool:
    """Whether a name can be written in a ``def`` as it is."""
    return name.isidentifier() and not keyword.iskeyword(name) and name.isascii()


def python_names(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each name, all different; a name that is one stays.

    Example:
        >>> python_names(["get weather", "class", "add"])
        {'get weather': 'get_weather', 'class': 'class_', 'add': 'add'}
    """
    given = list(dict.fromkeys(names))
    found = {name: name for name in given if is_python_name(name)}
    taken = set(found)
    for name in given:
        if name in found:
            continue
        wanted = _FOREIGN.sub("_", name) or "_"
        if wanted[0].isdigit():
            wanted = f"_{wanted}"
        while keyword.iskeyword(wanted) or wanted in taken:
            wanted += "_"
        taken.add(wanted)
        found[name] = wanted
    return {name: found[name] for name in given}
