"""Names for what mining makes: tools, parameters and variables."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable, Sequence

from agentkit.composites.language import RESERVED
from agentkit.tools.canonical import digest

LONGEST_TOOL_NAME = 64
"""What the providers' interfaces take."""

_VERBS = frozenset(
    {"calculate", "compute", "fetch", "find", "get", "list", "load", "look", "lookup", "make"}
    | {"query", "read", "retrieve", "search", "up", "by"}
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def words(name: str) -> tuple[str, ...]:
    """The words of a name, whatever its style, in lower case.

    Example:
        >>> words("originSkyId"), words("Hotels.Search_HTTPHotel2")
        (('origin', 'sky', 'id'), ('hotels', 'search', 'http', 'hotel', '2'))
    """
    return tuple(word.lower() for word in _WORD.findall(name))


def tool_name(children: Sequence[str]) -> str:
    """A name for a composite that calls ``children`` in this order.

    Example:
        >>> tool_name(["search_airport", "search_airport", "find_flights"])
        'search_airport_and_find_flights'
    """
    distinct = list(dict.fromkeys("_".join(words(child)) or "tool" for child in children))
    if len(distinct) == 1:
        distinct.append("again")
    name = "_and_".join(distinct) if len(distinct) <= 3 else ""
    if not 0 < len(name) <= LONGEST_TOOL_NAME:
        name = f"{distinct[0]}_to_{distinct[-1]}_in_{len(children)}_calls"
    if len(name) > LONGEST_TOOL_NAME:
        name = f"{name[: LONGEST_TOOL_NAME - 9]}_{digest(list(children))[:8]}"
    return name if name.isidentifier() else f"tool_{name}"[:LONGEST_TOOL_NAME]


def variable_names(children: Sequence[str], qualifiers: Sequence[str]) -> list[str]:
    """A variable for the result of each call, told apart by its qualifier where that helps."""
    nouns = [_noun(child) for child in children]
    names: list[str] = []
    for noun, qualifier in zip(nouns, qualifiers, strict=True):
        wanted = f"{qualifier}_{noun}" if qualifier and nouns.count(noun) > 1 else noun
        names.append(identifier(wanted, taken=names))
    return names


def _noun(child: str) -> str:
    parts = [word for word in words(child.rpartition(".")[2]) if word not in _VERBS]
    return "_".join(parts[-3:]) or "_".join(words(child)) or "result"


def qualifiers(fed: Sequence[Collection[str]]) -> list[str]:
    """What tells calls apart, read from the names of the parameters that their results fill.

    Args:
        fed: For each call the names of the parameters that its result fills.

    Returns:
        A word or two for each call; empty where the names do not tell it from all the others.

    Example:
        >>> qualifiers([["originSkyId", "originEntityId"], ["destinationSkyId"]])
        ['origin', 'destination']
    """
    found = []
    for at, names in enumerate(fed):
        others = {
            word
            for other, each in enumerate(fed)
            if other != at
            for name in each
            for word in words(name)
        }
        prefix = _common_prefix(words(name) for name in names)
        own = [word for word in prefix if word not in others]
        found.append("_".join(own[:2]))
    return [text if found.count(text) == 1 else "" for text in found]


def _common_prefix(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    prefix: tuple[str, ...] | None = None
    for name in names:
        if prefix is None:
            prefix = name
        same = 0
        while same < min(len(prefix), len(name)) and prefix[same] == name[same]:
            same += 1
        prefix = prefix[:same]
    return prefix or ()


def identifier(wanted: str, taken: Collection[str]) -> str:
    """``wanted`` as a name that the composite language takes and that is not in ``taken``.

    Example:
        >>> identifier("from", taken=()), identifier("max", taken=()), identifier("q", taken=["q"])
        ('from_', 'max_', 'q_2')
    """
    name = re.sub(r"\W", "_", wanted, flags=re.ASCII).lstrip("_") or "value"
    if not name[0].isalpha():
        name = f"value_{name}"
    if keyword.iskeyword(name) or name in RESERVED or name == "result":
        name = f"{name}_"
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
