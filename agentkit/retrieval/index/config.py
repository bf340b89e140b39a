"""``IndexConfig``: how the index of a library is made, and kept up with what changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.library.derived import Snapshot
from agentkit.retrieval.index.channel import Channel, Mask
from agentkit.retrieval.index.saved import Parts, SavedSegments
from agentkit.retrieval.index.segment import LARGEST, Segment
from agentkit.retrieval.index.tool_index import Part, ToolIndex
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

_SMALL = 64
"""Segments of so few tools are merged into one at each insert."""

_MOST_GONE = 0.5
"""A segment that lost more of its tools than this is written anew without them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexConfig:
    """Which channels an index has: the kind to ask a library for, see ``Library.derived``.

    The index is a log of segments. What is new comes as a segment of its own, which is merged with
    its neighbours when these are not larger, as in a binary counter: a tool is moved once for each
    doubling of its segment. What is gone loses its bit in a mask. Nothing that another version
    uses is written to.

    Attributes:
        channels: What is worked out about each tool; the order does not matter to results.
        largest: Most tools of a segment, at most 65,535. An insert never waits for the merge of
            a larger one.
        kept_from: How many tools a segment has at least to be kept in the store; a smaller one is
            made anew in less time than its place in the file is worth.
    """

    channels: tuple[Channel[Any], ...] = ()
    largest: int = LARGEST
    kept_from: int = 256

    def build(self, library: Snapshot) -> ToolIndex:
        """The index of a whole library, from segments that its store kept as far as there are."""
        definitions = {name: tool.definition for name, tool in library.tools.items()}
        if library.cache is None:
            return self._index(self._segments(tuple(definitions.values())))
        saved = SavedSegments(cache=library.cache, channels=self.channels)
        found = saved.find(tuple(definitions.values()))
        parts = self._settled([*found.parts, *self._segments(found.rest)])
        large = [segment for segment, _ in parts if len(segment) >= self.kept_from]
        saved.keep(large, known=found.digests, definitions=definitions)
        return self._index(parts)

    def update(
        self, value: ToolIndex, library: Snapshot, added: Sequence[Tool], removed: Collection[str]
    ) -> ToolIndex:
        """The index after a change."""
        gone = [
            row
            for name in (*removed, *(tool.name for tool in added))
            if (row := value.row(name)) is not None
        ]
        parts = _without(value.parts, gone)
        new = self._segments([tool.definition for tool in added])
        return self._index(self._settled([*parts, *new]))

    def _segments(self, definitions: Sequence[ToolDefinition]) -> Parts:
        return [
            (Segment.of(definitions[start : start + self.largest], self.channels), None)
            for start in range(0, len(definitions), self.largest)
        ]

    def _settled(self, parts: Parts) -> Parts:
        """The segments after merging what is small, and cleaning what is mostly gone."""
        first = _first_to_merge([len(segment) for segment, _ in parts], self.largest)
        kept = [self._cleaned(*part) for part in parts[:first]]
        if first < len(parts) - 1:
            kept.append((Segment.merged(parts[first:], self.channels), None))
        else:
            kept += [self._cleaned(*part) for part in parts[first:]]
        return [(segment, mask) for segment, mask in kept if len(segment)]

    def _cleaned(self, segment: Segment, mask: Mask | None) -> tuple[Segment, Mask | None]:
        if mask is None or mask.sum() >= _MOST_GONE * len(segment):
            return segment, mask
        return Segment.merged([(segment, mask)], self.channels), None

    def _index(self, segments: Parts) -> ToolIndex:
        parts, offset = [], 0
        for segment, mask in segments:
            living = len(segment) if mask is None else int(mask.sum())
            parts.append(Part(segment=segment, offset=offset, alive=mask, living=living))
            offset += len(segment)
        return ToolIndex(tuple(parts), self.channels)


def _without(parts: Sequence[Part], gone: Sequence[int]) -> Parts:
    """The segments with the rows of ``gone`` taken out; masks of earlier versions stay."""
    import numpy as np

    left = []
    for part in parts:
        mask = part.alive
        here = [row - part.offset for row in gone if part.rows.start <= row < part.rows.stop]
        if here:
            mask = np.ones(part.size, bool) if mask is None else mask.copy()
            mask[here] = False
        left.append((part.segment, mask))
    return left


def _first_to_merge(sizes: Sequence[int], largest: int = LARGEST) -> int:
    """From which segment on all are merged into one; the last one's place for none.

    Example:
        >>> _first_to_merge([4096, 128, 65, 64, 1]), _first_to_merge([128, 65, 1])
        (1, 2)
    """
    first, total = len(sizes) - 1, sizes[-1] if sizes else 0
    while (
        first > 0 and sizes[first - 1] <= max(_SMALL, total) and total + sizes[first - 1] <= largest
    ):
        first -= 1
        total += sizes[first]
    return max(first, 0)
