"""Segments kept in a store's cache: found again by the digests of what they are made of.

A segment's data are kept under a hash of the channel's fingerprint and of the digests of its
definitions, in order. So data of other definitions, or worked out in another way, are never found:
there is nothing to bring up to date and nothing that can be out of date. Which segments there are
stands in an outline, the digests of each; it is a hint, and any outline gives right answers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias

from agentkit.library.derived import DerivedCache
from agentkit.retrieval.index.channel import Channel, Mask
from agentkit.retrieval.index.names import NameTable
from agentkit.retrieval.index.packing import pack_arrays, unpack_arrays
from agentkit.retrieval.index.segment import Segment
from agentkit.tools.definition import ToolDefinition

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
