"""``Ranks``: the processes of a run, as far as what they decide together needs to know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Ranks(Protocol):
    """Processes that train one policy together. What travels between them is JSON data."""

    @property
    def rank(self) -> int:
        """Which process this is, from 0; 0 decides and writes."""
        ...

    @property
    def world(self) -> int:
        """How many there are."""
        ...

    def gather(self, value: Any) -> Sequence[Any]:
        """The values of all processes in order, at rank 0; nothing elsewhere."""
        ...

    def broadcast(self, value: Any) -> Any:
        """The value of rank 0, everywhere."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Alone:
    """One process."""

    rank: int = 0
    world: int = 1

    def gather(self, value: Any) -> Sequence[Any]:
        """The one value."""
        return (value,)

    def broadcast(self, value: Any) -> Any:
        """The value."""
        return value


ALONE = Alone()
"""The one process of most runs."""
