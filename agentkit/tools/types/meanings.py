"""Meanings: what a value is about, beyond its JSON type, as a forest of names.

A meaning says more than the one above it (an ``airport`` is a ``place``), and two meanings on
different branches exclude each other. The list is ours, chosen by what the parameters of public
catalogues hold; an identifier may name its owner (``id:hotel``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

PARENTS: Mapping[str, str] = MappingProxyType(
    {
        "moment": "",
        "date": "moment",
        "datetime": "moment",
        "time": "moment",
        "year": "moment",
        "month": "moment",
        "weekday": "moment",
        "duration": "",
        "place": "",
        "city": "place",
        "country": "place",
        "region": "place",
        "address": "place",
        "airport": "place",
        "postal_code": "place",
        "coordinate": "",
        "latitude": "coordinate",
        "longitude": "coordinate",
        "email": "",
        "phone": "",
        "url": "",
        "ip": "",
        "id": "",
        "uuid": "id",
        "language": "",
        "currency": "",
        "colour": "",
        "file_path": "",
        "secret": "",
        "count": "",
        "quantity": "",
        "money": "quantity",
        "percentage": "quantity",
        "length": "quantity",
        "mass": "quantity",
        "temperature": "quantity",
        "speed": "quantity",
        "area": "quantity",
        "volume": "quantity",
        "age": "quantity",
        "unit": "",
    }
)
"""Each meaning and the wider one above it; an empty text is no meaning in particular."""

MEANING_NAMES = frozenset(PARENTS)
"""All meanings, but for identifiers that name their owner."""

OWNED_ID = "id:"
"""How the meaning of an identifier begins that names its owner, as in ``id:hotel``."""


def is_meaning(name: str) -> bool:
    """Whether a text names a meaning; the empty text does, and means nothing in particular."""
    return not name or name in PARENTS or (name.startswith(OWNED_ID) and len(name) > len(OWNED_ID))


@lru_cache(maxsize=4_096)
def wider(meaning: str) -> tuple[str, ...]:
    """A meaning and all above it, the narrowest first; the last is always the empty one.

    Example:
        >>> wider("airport")
        ('airport', 'place', '')
        >>> wider("id:hotel")
        ('id:hotel', 'id', '')
    """
    line = [meaning]
    while meaning:
        meaning = "id" if meaning.startswith(OWNED_ID) else PARENTS[meaning]
        line.append(meaning)
    return tuple(line)


def includes(wide: str, narrow: str) -> bool:
    """Whether all that has the meaning ``narrow`` also has the meaning ``wide``."""
    return not wide or wide == narrow or wide in wider(narrow)


def common(left: str, right: str) -> str | None:
    """The meaning of what has both: the narrower one, or None when they exclude each other.

    Example:
        >>> common("place", "city"), common("city", "country")
        ('city', None)
    """
    if includes(left, right):
        return right
    return left if includes(right, left) else None
