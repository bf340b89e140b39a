"""Where two records of settings differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """A setting that two records do not share.

    Attributes:
        place: Its name, after those of its sections: ``engine.objective.temperature``.
        kept: What the first record has; None where it has nothing of that name.
        given: What the second one has.
    """

    place: str
    kept: Any
    given: Any


def differing(
    kept: Mapping[str, Any], given: Mapping[str, Any], *, inside: str = ""
) -> Iterator[Difference]:
    """Every setting in which two records differ, in the order of the first one.

    Args:
        kept: A record; sections are mappings.
        given: The other one.
        inside: What the places begin with.

    Example:
        >>> for one in differing({"lora": {"rank": 8}}, {"lora": {"rank": 16}}):
        ...     print(f"{one.place}: {one.kept}, then {one.given}")
        lora.rank: 8, then 16
    """
    for name in dict.fromkeys([*kept, *given]):
        mine, other = kept.get(name), given.get(name)
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            yield from differing(mine, other, inside=f"{inside}{name}.")
        elif mine != other:
            yield Difference(f"{inside}{name}", mine, other)
