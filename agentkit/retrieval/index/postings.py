"""Postings: for each key the rows that have it, with a weight. Built, merged and read as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from agentkit.retrieval.index.packing import pack_arrays, unpack_arrays

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentkit.retrieval.index.channel import Mask


_BLOCK = 32_768

FULL = 65_535
"""The weight 1 as it is kept. 8 bits would do for recall but let twice as many scores fall
together; half-precision floats are as large and three times as slow to read."""


@lru_cache(maxsize=16_384)  # the words of queries come again and again
def key_of(text: str) -> int:
    """A term as 64 bits, the same in every process (BLAKE2b).

    Two terms of one catalogue fall together with a chance of one in ten billion at 50,000 terms.

    Example:
        >>> key_of("weather") == key_of("weather") != key_of("whether")
        True
    """
    encoded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, digest_size=8).digest(), "little")


@dataclass(frozen=True, kw_only=True, slots=True)
class Occurrences:
    """Terms as they stand in the rows of a segment, one behind the other, in any order.

    Attributes:
        keys: uint64[terms]: the key of each distinct term.
        terms: int64[occurrences]: places in ``keys``.
        rows: int64[occurrences].
        amounts: float64[occurrences]: what each adds to the frequency of its term in its row.
    """

    keys: NDArray[np.uint64]
    terms: NDArray[np.int64]
    rows: NDArray[np.int64]
    amounts: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Postings:
    """An inverted file over the rows of one segment.

    Attributes:
        keys: uint64[keys], ascending, each once.
        starts: uint32[keys + 1]; the postings of key ``i`` are at ``starts[i]:starts[i + 1]``.
        rows: uint16[postings], ascending within a key, each once.
        weights: uint16[postings]: weights between 0 and 1, in 65,535ths.
    """

    keys: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    rows: NDArray[np.uint16]
    weights: NDArray[np.uint16]

    @classmethod
    def of(cls, rows: Sequence[Mapping[int, float]]) -> Postings:
        """Postings from the weights by key of each row.

        Args:
            rows: For each row, keys with weights between 0 and 1. One that would round to 0
                counts 1/65,535, so that a row that has a key always matches it.

        Example:
            >>> made = Postings.of([{7: 1.0}, {}, {3: 0.5, 7: 0.2}])
            >>> made.keys.tolist(), made.starts.tolist()
            ([3, 7], [0, 1, 3])
            >>> made.rows.tolist(), made.weights.tolist()
            ([2, 0, 2], [32768, 65535, 13107])
        """
        import numpy as np

        counts = np.fromiter(map(len, rows), np.int64, len(rows))
        total = int(counts.sum())
        keys = np.fromiter((key for row in rows for key in row), np.uint64, total)
        weights = np.fromiter((value for row in rows for value in row.values()), float, total)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = _first_of_each(keys)
        return cls(
            keys=keys[first],
            starts=np.append(np.flatnonzero(first), total).astype(np.uint32),
            rows=np.repeat(np.arange(len(rows), dtype=np.uint16), counts)[order],
            weights=_rounded(weights)[order],
        )

    @classmethod
    def saturated(cls, found: Occurrences, *, saturation: float) -> Postings:
        """Postings with the weight ``f / (saturation + f)``, f the frequency of a term in a row.

        Frequencies are added up in whole millionths, so that neither the order of occurrences nor
        the company that a row keeps moves a weight.
        """
        import numpy as np

        order = np.argsort(found.keys)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        pairs = rank[found.terms] << 16 | found.rows
        in_order = np.argsort(pairs)
        pairs = pairs[in_order]
        first = np.flatnonzero(_first_of_each(pairs))
        amounts = np.rint(found.amounts * 1e6).astype(np.int64)[in_order]
        frequencies = np.add.reduceat(amounts, first) / 1e6 if len(first) else np.zeros(0)
        pairs = pairs[first]
        terms = pairs >> 16
        starts = np.searchsorted(terms, np.arange(len(order) + 1))
        return cls(
            keys=found.keys[order],
            starts=starts.astype(np.uint32),
            rows=(pairs & 0xFFFF).astype(np.uint16),
            weights=_rounded(frequencies / (saturation + frequencies)),
        )

    @classmethod
    def merged(
        cls, parts: Sequence[tuple[Postings, Mask | None]], sizes: Sequence[int]
    ) -> Postings:
        """The postings of segments that become one.

        Args:
            parts: Each with the rows that are kept; None for all.
            sizes: How many rows are kept of each.

        Cost: a sort of the keys, not of the postings, and a copy of these.
        """
        import numpy as np

        kept = [part if mask is None else part.only(mask) for part, mask in parts]
        offsets = np.cumsum([0, *sizes[:-1]]) if sizes else ()
        keys = np.concatenate([part.keys for part in kept] or [np.zeros(0, np.uint64)])
        counts = np.concatenate(
            [np.diff(part.starts.astype(np.int64)) for part in kept] or [np.zeros(0, np.int64)]
        )
        order = np.argsort(keys, kind="stable")
        keys, ends = keys[order], np.cumsum(counts[order])
        first = _first_of_each(keys)
        rows = [part.rows + np.uint16(offset) for part, offset in zip(kept, offsets, strict=True)]
        starts = np.append((ends - counts[order])[first], ends[-1:].sum())
        before = np.cumsum(counts) - counts
        return cls(
            keys=keys[first],
            starts=starts.astype(np.uint32),
            rows=_taken(rows, before, counts, order),
            weights=_taken([part.weights for part in kept], before, counts, order),
        )

    def only(self, mask: Mask) -> Postings:
        """The postings of the rows in ``mask``, which move up to close the gaps."""
        import numpy as np

        kept = mask[self.rows]
        moved = (np.cumsum(mask) - 1).astype(np.uint16)
        before = np.concatenate([[0], np.cumsum(kept)])
        starts = before[self.starts]
        present = np.diff(starts) > 0
        return Postings(
            keys=self.keys[present],
            starts=np.append(starts[:-1][present], starts[-1]).astype(np.uint32),
            rows=moved[self.rows[kept]],
            weights=self.weights[kept],
        )

    def find(self, keys: NDArray[np.uint64]) -> list[tuple[int, int] | None]:
        """Where the postings of each key start and end; None for one that no row has."""
        import numpy as np

        if not len(self.keys):
            return [None] * len(keys)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = (self.keys[places] == keys).tolist()
        starts, ends = self.starts[places].tolist(), self.starts[places + 1].tolist()
        return [
            (start, end) if there else None
            for there, start, end in zip(known, starts, ends, strict=True)
        ]

    def holds(self, place: tuple[int, int], rows: NDArray[np.uint16]) -> Mask:
        """Which of some rows, in ascending order, are among the postings at a place."""
        import numpy as np

        there = self.rows[slice(*place)]
        held: Mask = there[np.minimum(there.searchsorted(rows), len(there) - 1)] == rows
        return held

    def at(
        self, places: Sequence[tuple[int, int]]
    ) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
        """Rows and weights of the postings at some places, one behind the other."""
        import numpy as np

        if not places:
            return self.rows[:0], self.weights[:0]
        slices = [slice(*place) for place in places]
        rows = np.concatenate([self.rows[one] for one in slices])
        return rows, np.concatenate([self.weights[one] for one in slices])

    def to_bytes(self) -> bytes:
        """All four arrays."""
        return pack_arrays(
            {
                "keys": self.keys,
                "starts": self.starts,
                "rows": self.rows,
                "weights": self.weights,
            }
        )

    @classmethod
    def from_bytes(cls, blob: bytes) -> Postings:
        """The inverse of ``to_bytes``."""
        return cls(**unpack_arrays(blob))


def _rounded(weights: NDArray[np.float64]) -> NDArray[np.uint16]:
    import numpy as np

    return np.clip(np.rint(weights * FULL), 1, FULL).astype(np.uint16)


def _first_of_each(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a new value starts in an ordered array."""
    import numpy as np

    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def _taken(
    parts: Sequence[NDArray[np.uint16]],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    order: NDArray[np.int64],
) -> NDArray[np.uint16]:
    """Slices of arrays that lie one behind the other, taken in another order.

    Done block by block: large intermediate arrays leave holes in the memory of the process that
    are several times the size of the index.
    """
    import numpy as np

    whole = np.concatenate([*parts, np.zeros(0, np.uint16)])
    taken = np.empty_like(whole)
    lengths = counts[order]
    ends = np.cumsum(lengths)
    shifts = starts[order] - (ends - lengths)
    first = done = 0
    while done < len(whole):
        last = int(np.searchsorted(ends, done + _BLOCK)) + 1
        upto = int(ends[min(last, len(ends)) - 1])
        places = np.repeat(shifts[first:last], lengths[first:last])
        places += np.arange(done, upto)
        np.take(whole, places, out=taken[done:upto])
        first, done = last, upto
    return taken
