"""Telling how far a long step is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias, TypeVar

from agentkit.errors import StoreError
from agentkit.library.abilities import Pruning
from agentkit.library.store import Store

T = TypeVar("T")


class Told(Protocol):
    """Hears how much of a step is done."""

    def __call__(self, done: float, total: float, /) -> None:
        """``done`` of ``total``."""
        ...


Progress: TypeAlias = Callable[[str], Told]
"""Given the title of a step, returns what hears how much of it is done."""


def silent(_title: str) -> Told:
    """Tells nobody of a step."""
    return _tell_nobody


def _tell_nobody(_done: float, _total: float) -> None:
    """Drop what was told."""


def counted(items: Iterable[T], told: Told, *, total: int) -> Iterator[T]:
    """The same items; each is told of. Where their number is not known (0), none is."""
    for number, item in enumerate(items, start=1):
        yield item
        if total:
            told(min(number, total), total)


def episode_count(store: Store) -> int:
    """How many episodes a store holds, where it can say so without reading them; else 0."""
    if not isinstance(store, Pruning):
        return 0
    try:
        return store.volume().count
    except StoreError:  # it may have to note something for that, and is open to be read only
        return 0
