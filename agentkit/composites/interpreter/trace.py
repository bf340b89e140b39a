"""What a caller can see of the calls that a composite makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedCall:
    """One call of a child, primitive or composite, told when it is over.

    Attributes:
        path: Names of the tools from the outermost composite to the called one.
        arguments: What it was called with.
        result: What it returned; None when it failed.
        error: What it raised; None when it returned.
        sequence: Its place in program order: sorting by it gives the order in which Python would
            start the calls, however they overlapped. A call sorts before the calls inside it.
        began_ns: When it began, in nanoseconds since 1970.
        ended_ns: When it was over.
    """

    path: tuple[str, ...]
    arguments: Mapping[str, Any]
    result: Any = None
    error: BaseException | None = None
    sequence: tuple[int, ...] = ()
    began_ns: int = 0
    ended_ns: int = 0

    @property
    def name(self) -> str:
        """The tool that was called."""
        return self.path[-1]

    @property
    def depth(self) -> int:
        """How many composites the call stands in; 1 for a call by the outermost one."""
        return len(self.path) - 1


class Order:
    """Hands out places in program order to what runs one after the other.

    Args:
        prefix: The place of the whole.
    """

    __slots__ = ("_next", "_prefix")

    def __init__(self, prefix: tuple[int, ...] = ()) -> None:
        self._prefix = prefix
        self._next = 0

    def take(self) -> tuple[int, ...]:
        """The next place."""
        place = (*self._prefix, self._next)
        self._next += 1
        return place
