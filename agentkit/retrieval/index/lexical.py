"""``LexicalChannel``: which words a definition holds, weighted by field (BM25F)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING

from agentkit.retrieval.index.channel import Mask
from agentkit.retrieval.index.postings import Postings, key_of
from agentkit.retrieval.index.texts import field_texts
from agentkit.retrieval.index.tool_index import Part, ToolIndex
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 1
"""Raise it when ``terms``, ``field_texts`` or the formula gives other postings than before."""

_LONGEST_QUERY = 64
"""Terms of a query that are looked up; of a longer one the rarest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldWeights:
    """How much one occurrence of a term counts, by field.

    On three public catalogues no change of a single weight by a third to a factor of two moved
    recall@5 by more than about a point, so the defaults are not tuned further.

    Attributes:
        name: The tool's name.
        description: Summary, usage rules and tags.
        parameter_names: Names of parameters at any depth.
        parameter_texts: Descriptions and allowed values of parameters.
    """

    name: float = 3.0
    description: float = 1.0
    parameter_names: float = 0.5
    parameter_texts: float = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldLengths:
    """How many terms a field of middling length has; longer ones count their terms less.

    They are fixed, where BM25 takes the averages of the catalogue: so that what is kept about one
    tool does not move when another is added.

    Attributes:
        name: The tool's name.
        description: Summary, usage rules and tags.
        parameter_names: Names of parameters at any depth.
        parameter_texts: Descriptions and allowed values of parameters.
    """

    name: float = 3.0
    description: float = 14.0
    parameter_names: float = 5.0
    parameter_texts: float = 26.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LexicalChannel:
    """BM25F postings: for each term the tools that hold it, with a weight worked out in advance.

    The field-weighted term frequency is saturated once, over all fields together (Robertson,
    Zaragoza and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004, with
    each field's length normalised as in BM25F of TREC-13, against ``lengths`` instead of the
    averages). The rarity of a term is worked out at query time, from exact counts.

    Attributes:
        weights: How much each field counts.
        lengths: The middling length of each field.
        saturation: k1 of BM25: how soon further occurrences of a term stop counting.
        length_normalisation: b of BM25: how much a long field is held against its terms, 0 to 1.
        split: From text to terms.

    Example:
        >>> from agentkit import Library
        >>> from agentkit.retrieval.index.config import IndexConfig
        >>> area = ToolDefinition.from_schema("circle_area", "Area of a circle.", {})
        >>> time = ToolDefinition.from_schema("current_time", "The time in a city.", {})
        >>> words = LexicalChannel()
        >>> index = Library([area, time]).derived(IndexConfig(channels=(words,)))
        >>> scores = words.scores(index, words.query("What time is it in Oslo?"))
        >>> [index.name(row) for row, score in index.top(scores, 5)]
        ['current_time']
        >>> words.matched(index, words.query("areas of two circles"), [0])
        {0: ('area', 'circle')}
    """

    weights: FieldWeights = field(default_factory=FieldWeights)
    lengths: FieldLengths = field(default_factory=FieldLengths)
    saturation: float = 1.2
    length_normalisation: float = 0.4
    split: Callable[[str], list[str]] = terms

    @property
    def fingerprint(self) -> str:
        """Every setting; "" with a ``split`` of one's own, whose meaning has no name."""
        if self.split is not terms:
            return ""
        settings = (
            *astuple(self.weights),
            *astuple(self.lengths),
            self.saturation,
            self.length_normalisation,
        )
        return f"lexical/{_VERSION}/" + "/".join(map(repr, settings))

    def query(self, text: str) -> dict[str, float]:
        """The terms of a query, each with weight 1 however often it stands there, in order."""
        return dict.fromkeys(self.split(text), 1.0)

    # --- answering --------------------------------------------------------------------------------

    def scores(self, index: ToolIndex, terms: Mapping[str, float]) -> NDArray[np.float32]:
        """How well each tool matches; 0 for one that shares no term.

        Args:
            index: An index that has this channel.
            terms: What is searched, each term with its weight. Of more than 64 the rarest count.

        Returns:
            float32[index.size]. Comparable within one query only.
        """
        import numpy as np

        scores = np.zeros(index.size, np.float32)
        found = self._found(index, terms)
        for part, data, places in found.parts:
            view = scores[part.offset : part.offset + part.size]
            for place, gain in zip(places, found.gains, strict=True):
                if place is not None and gain:
                    here = slice(*place)
                    view[data.rows[here]] += data.weights[here].astype(np.float32) * gain
            if part.alive is not None:
                view *= part.alive
        return scores

    def document_frequency(self, index: ToolIndex, term: str) -> int:
        """How many tools hold the term."""
        return self._found(index, {term: 1.0}).counts[0]

    def matched(
        self, index: ToolIndex, terms: Mapping[str, float], rows: Iterable[int]
    ) -> dict[int, tuple[str, ...]]:
        """The terms that occur in the tools at ``rows``, in the order of ``terms``."""
        import numpy as np

        shared: dict[int, list[str]] = {row: [] for row in rows}
        wanted = np.array(sorted(shared), np.int64)
        names = list(terms)
        keys = np.fromiter(map(key_of, names), np.uint64, len(names))
        for part, data in index.data(self):
            inside = wanted[(wanted >= part.offset) & (wanted < part.offset + part.size)]
            places = data.find(keys) if len(inside) else []
            for name, place in zip(names, places, strict=False):
                if place is not None:
                    held = np.isin(inside - part.offset, data.rows[slice(*place)])
                    for row in inside[held].tolist():
                        shared[row].append(name)
        order = {name: at for at, name in enumerate(names)}
        return {row: tuple(sorted(found, key=order.__getitem__)) for row, found in shared.items()}

    def _found(self, index: ToolIndex, terms: Mapping[str, float]) -> _Found:
        import numpy as np

        keys = np.fromiter(map(key_of, terms), np.uint64, len(terms))
        parts = [(part, data, data.find(keys)) for part, data in index.data(self)]
        counts = [0] * len(keys)
        for part, data, places in parts:
            for at, place in enumerate(places):
                if place is not None:
                    counts[at] += part.count(data.rows[slice(*place)])
        gains = [
            weight * _rarity(count, len(index)) * (self.saturation + 1) if count else 0.0
            for weight, count in zip(terms.values(), counts, strict=True)
        ]
        if len(gains) > _LONGEST_QUERY:
            rarest = sorted(range(len(gains)), key=lambda at: (not gains[at], counts[at], at))
            for at in rarest[_LONGEST_QUERY:]:
                gains[at] = 0.0
        return _Found(parts=tuple(parts), counts=counts, gains=[np.float32(gain) for gain in gains])

    # --- keeping ----------------------------------------------------------------------------------

    def build(self, definitions: Sequence[ToolDefinition]) -> Postings:
        """The postings of some definitions."""
        known: dict[str, list[int]] = {}
        return Postings.of([self._weights(definition, known) for definition in definitions])

    def merge(
        self, parts: Sequence[tuple[Postings, Mask | None]], sizes: Sequence[int]
    ) -> Postings:
        """The postings of several segments."""
        return Postings.merged(parts, sizes)

    def to_bytes(self, data: Postings) -> bytes:
        """The arrays of the postings."""
        return data.to_bytes()

    def from_bytes(self, blob: bytes) -> Postings:
        """The inverse of ``to_bytes``."""
        return Postings.from_bytes(blob)

    def _weights(self, definition: ToolDefinition, known: dict[str, list[int]]) -> dict[int, float]:
        """The weight of each key of one definition; ``known`` remembers the keys of texts."""
        frequencies: dict[int, float] = {}
        texts = field_texts(definition)
        fields = zip(texts, astuple(self.weights), astuple(self.lengths), strict=True)
        b, k1 = self.length_normalisation, self.saturation
        for text, weight, length in fields:
            keys = [key for term in self.split(text) for key in _remembered(term, known)]
            step = weight / (1 - b + b * len(keys) / length)
            for key in keys:
                frequencies[key] = frequencies.get(key, 0.0) + step
        return {key: value / (k1 + value) for key, value in frequencies.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """The postings of a query: by segment where they are, by term how many and how much."""

    parts: tuple[tuple[Part, Postings, list[tuple[int, int] | None]], ...]
    counts: list[int]
    gains: list[np.float32]


def _remembered(term: str, known: dict[str, list[int]]) -> list[int]:
    keys = known.get(term)
    if keys is None:
        keys = known[term] = [key_of(term)]
    return keys


def _rarity(count: int, total: int) -> float:
    """The inverse document frequency of BM25, never negative."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))
