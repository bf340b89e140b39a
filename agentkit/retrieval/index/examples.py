"""``ExampleChannel``: the requests that worked calls answered (L4), each kept on its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from agentkit.retrieval.index.channel import Mask
from agentkit.retrieval.index.packing import pack_arrays, unpack_arrays
from agentkit.retrieval.index.postings import key_of
from agentkit.retrieval.index.tool_index import ToolIndex
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 1
"""Raise it when ``terms`` or what is kept of an example changes."""

_LONGEST_QUERY = 64
"""Different terms of a request that are looked up, the first ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExamplePostings:
    """Which examples of a segment hold which term.

    Attributes:
        keys: uint64[keys], ascending, each once.
        starts: uint32[keys + 1]; the postings of key ``i`` are at ``starts[i]:starts[i + 1]``.
        places: uint32[postings]: examples, numbered within the segment.
        owners: uint16[examples]: the row of the tool that an example belongs to, ascending.
        lengths: uint16[examples]: how many different terms an example has.
    """

    keys: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    places: NDArray[np.uint32]
    owners: NDArray[np.uint16]
    lengths: NDArray[np.uint16]

    @classmethod
    def of(cls, owners: Sequence[int], examples: Sequence[frozenset[int]]) -> ExamplePostings:
        """Postings from the keys of each example."""
        import numpy as np

        lengths = np.fromiter(map(len, examples), np.uint16, len(examples))
        total = int(lengths.sum(dtype=np.int64))
        keys = np.fromiter((key for one in examples for key in sorted(one)), np.uint64, total)
        places = np.repeat(np.arange(len(examples), dtype=np.uint32), lengths)
        return cls.sorted(keys, places, np.array(owners, np.uint16), lengths)

    @classmethod
    def sorted(
        cls,
        keys: NDArray[np.uint64],
        places: NDArray[np.uint32],
        owners: NDArray[np.uint16],
        lengths: NDArray[np.uint16],
    ) -> ExamplePostings:
        """Postings from pairs of key and example, in any order."""
        import numpy as np

        order = np.lexsort((places, keys))
        keys = keys[order]
        distinct, firsts = np.unique(keys, return_index=True)
        return cls(
            keys=distinct,
            starts=np.append(firsts, len(keys)).astype(np.uint32),
            places=places[order],
            owners=owners,
            lengths=lengths,
        )

    def only(self, mask: Mask | None, size: int, offset: int) -> _Pairs:
        """The pairs of the tools in ``mask``, whose rows close up and move by ``offset``."""
        import numpy as np

        kept = np.ones(size, bool) if mask is None else mask
        rows = (np.cumsum(kept) - 1 + offset).astype(np.uint16)
        examples = kept[self.owners]
        places = (np.cumsum(examples) - 1).astype(np.uint32)
        keys = np.repeat(self.keys, self.starts[1:] - self.starts[:-1])
        pairs = examples[self.places]
        return _Pairs(
            keys=keys[pairs],
            places=places[self.places[pairs]],
            owners=rows[self.owners[examples]],
            lengths=self.lengths[examples],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pairs:
    """Examples and their keys, before they are sorted."""

    keys: NDArray[np.uint64]
    places: NDArray[np.uint32]
    owners: NDArray[np.uint16]
    lengths: NDArray[np.uint16]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleChannel:
    """How like a request is to the requests that a tool's worked calls answered.

    A tool is as like a request as its most alike example is. Examples are not poured together into
    one field: then a tool with many of them would share some word with every request, which on
    requests for several tools costs more than examples gain. The likeness of a request q and an
    example e lies between 0 and 1::

        rarity(q and e) / rarity(q)  *  |q and e| / |e|

    the share of the request that the example has, terms weighed by how few examples hold them,
    times the share of the example that the request has. It is 1 for the same words, and small
    for a few shared ones; it is not stretched so that the best tool always has 1.

    Measured on development splits, half of the requests as examples and the other half asked
    (see the stage ``Examples``): it is better than the idf-weighted cosine of the nearest example
    and than BM25 over all examples of a tool, and needs nothing that depends on the rest of the
    catalogue.

    Attributes:
        most: Examples of one tool that count, the last ones.
        split: From text to terms.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit import Library
        >>> from agentkit.retrieval.index.config import IndexConfig
        >>> from agentkit.tools.definition import Example
        >>> convert = ToolDefinition.from_schema("convert", "Convert between units.", {})
        >>> worked = Example(arguments={}, query="How much is ten dollars in euros?")
        >>> index = Library([replace(convert, examples=(worked,))]).derived(
        ...     IndexConfig(channels=(ExampleChannel(),)))
        >>> ExampleChannel().scores(index, "ten dollars in euros, please").round(2).tolist()
        [0.75]
    """

    most: int = 64
    split: Callable[[str], list[str]] = terms

    @property
    def fingerprint(self) -> str:
        """Every setting; "" with a ``split`` of one's own, whose meaning has no name."""
        return f"examples/{_VERSION}/{self.most}" if self.split is terms else ""

    def is_empty(self, index: ToolIndex) -> bool:
        """Whether no tool has an example with a request."""
        return all(not len(data.owners) for _, data in index.data(self))

    def scores(self, index: ToolIndex, text: str) -> NDArray[np.float32]:
        """The likeness of each tool's most alike example.

        Args:
            index: An index that has this channel.
            text: The request, or a step of it.

        Returns:
            float32[index.size], between 0 and 1; 0 for a tool without examples.
        """
        import numpy as np

        scores = np.zeros(index.size, np.float32)
        keys = np.fromiter(self._keys(text, {}), np.uint64)
        parts = [(part, data, _postings(data, keys)) for part, data in index.data(self)]
        living = [
            None if part.alive is None else part.alive[data.owners] for part, data, _ in parts
        ]
        total = sum(
            len(data.owners) if alive is None else int(alive.sum())
            for (_, data, _), alive in zip(parts, living, strict=True)
        )
        rarities = [
            _rarity(_count((found[at] for _, _, found in parts), living), total)
            for at in range(len(keys))
        ]
        mass = sum(rarities)
        for part, data, found in parts:
            if mass and len(data.owners):
                likeness = _likeness(data, found, rarities) / mass
                _raise_to(scores[part.rows], data.owners, likeness)
                if part.alive is not None:
                    scores[part.rows] *= part.alive
        return scores

    def unknown(self, index: ToolIndex, terms: Sequence[str]) -> list[str]:
        """Those of ``terms`` that no example of a tool of this version holds."""
        import numpy as np

        keys = np.fromiter(map(key_of, terms), np.uint64, len(terms))
        held: set[int] = set()
        for part, data in index.data(self):
            living = None if part.alive is None else part.alive[data.owners]
            for at, places in enumerate(_postings(data, keys)):
                if len(places) if living is None else living[places].any():
                    held.add(at)
        return [term for at, term in enumerate(terms) if at not in held]

    def _keys(self, text: str, known: dict[str, int]) -> Iterator[int]:
        """The keys of a text's terms; ``known`` remembers those of terms that come again."""
        for term in islice(dict.fromkeys(self.split(text)), _LONGEST_QUERY):
            if term not in known:
                known[term] = key_of(term)
            yield known[term]

    # --- keeping ----------------------------------------------------------------------------------

    def build(self, definitions: Sequence[ToolDefinition]) -> ExamplePostings:
        """The requests of the examples of some definitions."""
        owners, examples = [], []
        known: dict[str, int] = {}
        for row, definition in enumerate(definitions):
            texts = dict.fromkeys(one.query for one in definition.examples if one.query)
            for text in [*texts][-self.most :]:
                if keys := frozenset(self._keys(text, known)):
                    owners.append(row)
                    examples.append(keys)
        return ExamplePostings.of(owners, examples)

    def merge(
        self, parts: Sequence[tuple[ExamplePostings, Mask | None]], sizes: Sequence[int]
    ) -> ExamplePostings:
        """The examples of several segments."""
        import numpy as np

        pairs, offset, examples = [], 0, 0
        for (part, mask), size in zip(parts, sizes, strict=True):
            pairs.append((part.only(mask, size, offset), examples))
            offset += size
            examples += len(pairs[-1][0].owners)
        if not pairs:
            return ExamplePostings.of([], [])
        return ExamplePostings.sorted(
            np.concatenate([one.keys for one, _ in pairs]),
            np.concatenate([one.places + np.uint32(first) for one, first in pairs]),
            np.concatenate([one.owners for one, _ in pairs]),
            np.concatenate([one.lengths for one, _ in pairs]),
        )

    def to_bytes(self, data: ExamplePostings) -> bytes:
        """All five arrays."""
        return pack_arrays({name: getattr(data, name) for name in ExamplePostings.__slots__})

    def from_bytes(self, blob: bytes) -> ExamplePostings:
        """The inverse of ``to_bytes``."""
        return ExamplePostings(**unpack_arrays(blob))


def _postings(data: ExamplePostings, keys: NDArray[np.uint64]) -> list[NDArray[np.uint32]]:
    """The examples that hold each key."""
    import numpy as np

    places = np.searchsorted(data.keys, keys)
    found = []
    for place, key in zip(places.tolist(), keys, strict=True):
        known = place < len(data.keys) and data.keys[place] == key
        start, end = (data.starts[place], data.starts[place + 1]) if known else (0, 0)
        found.append(data.places[start:end])
    return found


def _count(found: Iterable[NDArray[np.uint32]], living: Sequence[Mask | None]) -> int:
    """Examples that hold a key and belong to tools of this version."""
    return sum(
        len(places) if alive is None else int(alive[places].sum())
        for places, alive in zip(found, living, strict=True)
    )


def _likeness(
    data: ExamplePostings, found: Sequence[NDArray[np.uint32]], rarities: Sequence[float]
) -> NDArray[np.float32]:
    """For each example the rarity of the terms that it shares, times the share of its terms."""
    import numpy as np

    size = len(data.owners)
    places = np.concatenate([*found, np.zeros(0, np.uint32)])
    weights = np.repeat(rarities, [len(one) for one in found])
    shared = np.bincount(places, weights, minlength=size)
    count = np.bincount(places, minlength=size)
    return (shared * count / data.lengths).astype(np.float32)


def _raise_to(
    scores: NDArray[np.float32], owners: NDArray[np.uint16], likeness: NDArray[np.float32]
) -> None:
    """Give each tool the highest likeness of its examples; these stand in the order of tools."""
    import numpy as np

    firsts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
    scores[owners[firsts]] = np.maximum.reduceat(likeness, firsts)


def _rarity(count: int, total: int) -> float:
    """The inverse document frequency of BM25 over examples, never negative."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))
