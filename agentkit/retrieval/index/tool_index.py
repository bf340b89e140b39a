"""``ToolIndex``: the segments of one library version, read as one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from agentkit.errors import UsageError
from agentkit.retrieval.index.channel import Channel, Mask
from agentkit.retrieval.index.phrases import Spans
from agentkit.retrieval.index.ranking import best_rows
from agentkit.retrieval.index.segment import Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

D = TypeVar("D")

_FEW = 100
"""So many rows are sorted by name as they are; of more, the order of each segment is used."""

_REMEMBERED = 1_000
"""Rows of names that are kept at hand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A segment within an index.

    Attributes:
        segment: The segment; other versions may share it.
        offset: The row of the index at which it starts.
        alive: Which of its rows are in this version; None for all.
        living: How many those are.
    """

    segment: Segment
    offset: int
    alive: Mask | None
    living: int

    @property
    def size(self) -> int:
        """Rows, those of tools that are gone included."""
        return len(self.segment)

    @property
    def rows(self) -> slice:
        """Its rows within the index."""
        return slice(self.offset, self.offset + len(self.segment))

    def count(self, rows: NDArray[Any]) -> int:
        """How many of its own ``rows`` are in this version."""
        return len(rows) if self.alive is None else int(self.alive[rows].sum())


class ToolIndex:
    """What channels know about the tools of one library version; never changes.

    Tools are numbered: *row* is the place of a tool in this index, from 0 to ``size``. Rows of
    tools that were removed stay in between until segments merge, and are not ``alive``. A row means
    nothing in another version's index.

    Made by ``library.derived(IndexConfig(channels=...))``.

    Args:
        parts: The segments, one behind the other.
        channels: What each of them has data of.
    """

    def __init__(self, parts: tuple[Part, ...], channels: tuple[Channel[Any], ...]) -> None:
        self.parts = parts
        self.channels = channels
        self.size = parts[-1].rows.stop if parts else 0
        self._living = sum(part.living for part in parts)
        self._offsets = [part.offset for part in parts]
        self._places = {channel: place for place, channel in enumerate(channels)}
        self._rows: dict[str, int] = {}  # of the tools that were named last

    def __len__(self) -> int:
        return self._living

    def __repr__(self) -> str:
        return f"ToolIndex({len(self)} tools, {len(self.parts)} segments)"

    @cached_property
    def alive(self) -> Mask:
        """bool[size]: which rows hold a tool of this version. Not to be written to."""
        import numpy as np

        alive = np.ones(self.size, bool)
        for part in self.parts:
            if part.alive is not None:
                alive[part.rows] = part.alive
        alive.flags.writeable = False
        return alive

    def name(self, row: int) -> str:
        """The name of the tool at a row."""
        part = self.parts[bisect_right(self._offsets, row) - 1]
        name = part.segment.names.names[row - part.offset]
        if part.alive is None or part.alive[row - part.offset]:  # a removed one has no row
            if len(self._rows) > _REMEMBERED:
                self._rows.clear()
            self._rows[name] = row  # whoever learns a name soon asks for its row
        return name

    def row(self, name: str) -> int | None:
        """The row of a tool; None when this version has no tool of that name."""
        known = self._rows.get(name)
        if known is not None:
            return known
        for part in reversed(self.parts):
            row = part.segment.names.row(name)
            if row is not None and (part.alive is None or part.alive[row]):
                return part.offset + row
        return None

    def called(self, folded: str) -> list[str]:
        """Names that equal ``folded`` without capitals."""
        return [
            part.segment.names.names[row]
            for part in self.parts
            for row in part.segment.names.rows_of(folded)
            if part.alive is None or part.alive[row]
        ]

    def phrases_in(self, spans: Spans) -> list[tuple[int, str]]:
        """Where which names stand word for word in a text, of those that are no identifiers."""
        return [
            (start, part.segment.names.names[row])
            for part in self.parts
            for start, row in part.segment.names.phrases_in(spans)
            if part.alive is None or part.alive[row]
        ]

    def data(self, channel: Channel[D]) -> Iterator[tuple[Part, D]]:
        """What a channel keeps about each segment.

        Raises:
            UsageError: The index was made without that channel.
        """
        place = self._places.get(channel)
        if place is None:
            known = ", ".join(type(one).__name__ for one in self.channels) or "no channels"
            raise UsageError(
                f"this index has {known}, but not the {type(channel).__name__} that is asked for; "
                "a stage names what it reads in its attribute `channels`, and survivors made by "
                "hand take them: Survivors.of(library, stage.channels)"
            )
        return ((part, part.segment.data[place]) for part in self.parts)

    def top(
        self, scores: NDArray[np.float32], count: int, mask: Mask | None = None
    ) -> list[tuple[int, float]]:
        """The rows of the ``count`` highest scores above 0, best first; ties go by tool name.

        Args:
            scores: float[size].
            count: Most rows to give.
            mask: bool[size]: the rows in question; None for all that are alive.
        """
        mask = self.alive if mask is None and self._living < self.size else mask
        sure, tied = best_rows(scores, count, mask)
        rows = [*sure.tolist(), *self._first_by_name(tied, count - len(sure))]
        return self._in_order(rows, scores[rows])

    def top_of(
        self, rows: NDArray[np.intp], scores: NDArray[np.float32], count: int
    ) -> list[tuple[int, float]]:
        """Like ``top``, where only a few rows have a score.

        Args:
            rows: Rows of tools, in ascending order.
            scores: float[rows].
            count: Most rows to give.
        """
        sure, tied = best_rows(scores, count, None)
        chosen = [*rows[sure].tolist(), *self._first_by_name(rows[tied], count - len(sure))]
        return self._in_order(chosen, scores[rows.searchsorted(chosen)])

    def _in_order(
        self, rows: Sequence[int], scores: NDArray[np.float32]
    ) -> list[tuple[int, float]]:
        found = zip(rows, scores.tolist(), strict=True)
        return sorted(found, key=lambda one: (-one[1], self.name(one[0])))

    def _first_by_name(self, rows: NDArray[np.int64], count: int) -> list[int]:
        """Those ``count`` of the rows, in ascending order, whose names come first."""
        if len(rows) <= _FEW:
            return sorted(rows.tolist(), key=self.name)[:count]
        first: list[int] = []
        for part in self.parts:
            start, end = rows.searchsorted((part.offset, part.offset + part.size))
            inside = rows[start:end] - part.offset
            ranks = part.segment.names.ranks[inside]
            chosen = inside[ranks.argsort()[:count]] + part.offset
            first += chosen.tolist()
        return sorted(first, key=self.name)[:count]
