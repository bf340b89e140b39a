"""``IndexConfig``: how the index of a library is made, and kept up with what changes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias

from agentkit.library.derived import DerivedCache, Snapshot
from agentkit.retrieval.index.channel import Channel, Mask
from agentkit.retrieval.index.names import NameTable
from agentkit.retrieval.index.packing import pack_arrays, unpack_arrays
from agentkit.retrieval.index.segment import LARGEST, Segment
from agentkit.retrieval.index.tool_index import Part, ToolIndex
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

logger = logging.getLogger(__name__)

_OUTLINE = "agentkit.index.outline/1"
_NAMES = "names/1"
_DIGEST_BYTES = 32

Parts: TypeAlias = "list[tuple[Segment, Mask | None]]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What the cache had.

    Attributes:
        parts: Segments with the rows that the library has.
        rest: The definitions that are in none of them.
        digests: The digests of each segment's rows, by the identity of the segment.
    """

    parts: Parts
    rest: Sequence[ToolDefinition]
    digests: Mapping[int, bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedSegments:
    """The segments that a store keeps, for indexes of some channels.

    Attributes:
        cache: Where they are.
        channels: What each segment has.
    """

    cache: DerivedCache
    channels: Sequence[Channel[Any]]

    def find(self, definitions: Sequence[ToolDefinition]) -> Found:
        """The segments that are made of definitions of a library, half of them at least.

        Args:
            definitions: All of the library, with distinct names.
        """
        wanted = {bytes.fromhex(one.digest): one for one in definitions}
        parts: Parts = []
        known: dict[int, bytes] = {}
        for digests in reversed(_outline(self.cache.get([_OUTLINE]).get(_OUTLINE))):
            rows = [wanted.get(row) for row in _rows(digests)]
            alive = [row for row in rows if row is not None]
            segment = self._read(digests, rows) if 2 * len(alive) >= len(rows) else None
            if segment is not None:
                parts.append((segment, _mask(rows)))
                known[id(segment)] = digests
                for row in alive:  # of a tool that stands in two segments the later one counts
                    wanted.pop(bytes.fromhex(row.digest))
        return Found(parts=parts[::-1], rest=tuple(wanted.values()), digests=known)

    def keep(
        self,
        segments: Sequence[Segment],
        *,
        known: Mapping[int, bytes],
        definitions: Mapping[str, ToolDefinition],
    ) -> None:
        """Write segments down, if there are new ones among them.

        Args:
            segments: Those of an index that are worth it.
            known: The digests of those that were found, by identity.
            definitions: The library's definitions by name.
        """
        entries: dict[str, bytes] = {}
        in_use: list[str] = []
        outline: list[bytes] = []
        for segment in segments:
            if id(segment) in known:
                digests = known[id(segment)]
                in_use += self._keys(digests)
            else:
                names = segment.names.names
                digests = b"".join(bytes.fromhex(definitions[name].digest) for name in names)
                entries |= self._entries(segment, digests)
            outline.append(digests)
        if entries:
            entries[_OUTLINE] = _outline_bytes(outline)
            self.cache.put(entries, keep=in_use)

    def _read(self, digests: bytes, rows: Sequence[ToolDefinition | None]) -> Segment | None:
        """The segment of those digests; None when its data are neither kept nor can be made."""
        blobs = self.cache.get(self._keys(digests))
        whole = [row for row in rows if row is not None]
        names = ["" if row is None else row.name for row in rows]
        table, data = blobs.get(_key(digests, _NAMES)), []
        try:
            for channel in self.channels:
                blob = blobs.get(_key(digests, channel.fingerprint))
                if blob is None and len(whole) < len(rows):
                    return None  # the definitions of rows that are gone can not be had
                data.append(channel.build(whole) if blob is None else channel.from_bytes(blob))
            made = NameTable.of(names) if table is None else NameTable.from_bytes(table, names)
        except (ValueError, TypeError, KeyError) as error:
            logger.warning("a kept index can not be read and is made anew: %r", error)
            return None
        return Segment(names=made, data=tuple(data))

    def _entries(self, segment: Segment, digests: bytes) -> dict[str, bytes]:
        entries = {_key(digests, _NAMES): segment.names.to_bytes()}
        for channel, data in zip(self.channels, segment.data, strict=True):
            if channel.fingerprint:
                entries[_key(digests, channel.fingerprint)] = channel.to_bytes(data)
        return entries

    def _keys(self, digests: bytes) -> list[str]:
        prints = (channel.fingerprint for channel in self.channels)
        return [_key(digests, kind) for kind in (_NAMES, *filter(None, prints))]


def _key(digests: bytes, kind: str) -> str:
    return sha256(kind.encode() + b"\n" + digests).hexdigest()


def _rows(digests: bytes) -> list[bytes]:
    ends = range(_DIGEST_BYTES, len(digests) + 1, _DIGEST_BYTES)
    return [digests[end - _DIGEST_BYTES : end] for end in ends]


def _mask(rows: Sequence[ToolDefinition | None]) -> Mask | None:
    """Which rows are there; None for all."""
    import numpy as np

    mask = np.fromiter((row is not None for row in rows), bool, len(rows))
    return None if mask.all() else mask


def _outline_bytes(segments: Sequence[bytes]) -> bytes:
    import numpy as np

    sizes = np.array([len(digests) for digests in segments], np.int64)
    return pack_arrays({"sizes": sizes, "digests": np.frombuffer(b"".join(segments), np.uint8)})


def _outline(blob: bytes | None) -> list[bytes]:
    if blob is None:
        return []
    try:
        arrays = unpack_arrays(blob)
        joined, ends = arrays["digests"].tobytes(), arrays["sizes"].cumsum().tolist()
    except (ValueError, KeyError) as error:
        logger.warning("the outline of a kept index can not be read: %r", error)
        return []
    return [joined[start:end] for start, end in zip([0, *ends], ends, strict=False)]


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
