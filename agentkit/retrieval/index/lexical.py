"""``LexicalChannel``: which words a definition holds, weighted by field (BM25F)."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING

from agentkit.retrieval.index.channel import Mask
from agentkit.retrieval.index.postings import FULL, Occurrences, Postings, key_of
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

    On the development parts of three public catalogues no change of a single weight by a third to
    a factor of two moved recall@5 by more than about a point.

    Attributes:
        name: The tool's name.
        description: Summary, usage rules and tags.
        parameter_names: Names of parameters at any depth.
        parameter_texts: Descriptions and allowed values of parameters.
    """

    name: float = 2.0
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
    saturation: float = 0.9
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
                    steps = np.multiply(data.weights[here], gain, dtype=np.float32)
                    np.add.at(view, data.rows[here].astype(np.intp), steps)
            if part.alive is not None:
                view *= part.alive
        return scores

    def document_frequency(self, index: ToolIndex, term: str) -> int:
        """How many tools hold the term."""
        return self._found(index, {term: 1.0}).counts[0]

    def unknown(self, index: ToolIndex, terms: Mapping[str, float]) -> list[str]:
        """Those of ``terms`` that no tool holds."""
        counts = self._found(index, terms).counts
        return [term for term, count in zip(terms, counts, strict=True) if not count]

    def matched(
        self, index: ToolIndex, terms: Mapping[str, float], rows: Iterable[int]
    ) -> dict[int, tuple[str, ...]]:
        """The terms that occur in the tools at ``rows``, in the order of ``terms``."""
        import numpy as np

        shared: dict[int, list[str]] = {row: [] for row in rows}
        wanted = np.array(sorted(shared), np.int64)
        keys = np.fromiter(map(key_of, terms), np.uint64, len(terms))
        for part, data in index.data(self):
            first, end = np.searchsorted(wanted, (part.offset, part.offset + part.size))
            inside = wanted[first:end]
            rows = (inside - part.offset).astype(np.uint16)
            places = data.find(keys) if len(rows) else [None] * len(keys)
            for term, place in zip(terms, places, strict=True):
                if place is not None:
                    for row in inside[data.holds(place, rows)].tolist():
                        shared[row].append(term)
        return {row: tuple(found) for row, found in shared.items()}

    def contributions(
        self, index: ToolIndex, terms: Mapping[str, float], rows: Sequence[int]
    ) -> NDArray[np.float32]:
        """What each term adds to the scores of a few tools.

        Args:
            index: An index that has this channel.
            terms: What is searched, each term with its weight.
            rows: Rows of tools.

        Returns:
            float32[len(terms), len(rows)]; over the terms it adds up to ``scores`` at these rows.
        """
        import numpy as np

        table = np.zeros((len(terms), len(rows)), np.float32)
        wanted = np.asarray(rows, np.int64)
        found = self._found(index, terms)
        for part, data, places in found.parts:
            columns = np.flatnonzero((wanted >= part.offset) & (wanted < part.offset + part.size))
            here = (wanted[columns] - part.offset).astype(np.uint16)
            if not len(here):
                continue
            for line, (place, gain) in enumerate(zip(places, found.gains, strict=True)):
                if place is not None and gain:
                    table[line, columns] = data.weights_at(place, here) * gain
        return table

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
        return _Found(
            parts=tuple(parts), counts=counts, gains=[np.float32(gain / FULL) for gain in gains]
        )

    # --- keeping ----------------------------------------------------------------------------------

    def build(self, definitions: Sequence[ToolDefinition]) -> Postings:
        """The postings of some definitions."""
        return Postings.saturated(
            _counted(definitions, self.split, self._steps), saturation=self.saturation
        )

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

    def _steps(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """What one occurrence of a term adds, by tool and field, from the terms of each."""
        import numpy as np

        b = self.length_normalisation
        weights, lengths = np.array(astuple(self.weights)), np.array(astuple(self.lengths))
        steps: NDArray[np.float64] = weights / (1 - b + b * counts / lengths)
        return steps


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """The postings of a query: by segment where they are, by term how many and how much."""

    parts: tuple[tuple[Part, Postings, list[tuple[int, int] | None]], ...]
    counts: list[int]
    gains: list[np.float32]


def _counted(
    definitions: Sequence[ToolDefinition],
    split: Callable[[str], list[str]],
    steps: Callable[[NDArray[np.int64]], NDArray[np.float64]],
) -> Occurrences:
    """Each occurrence of a term in each tool, with what it adds to the frequency there."""
    import numpy as np

    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__  # a new term gets the next number
    terms, counts = array("i"), array("l")
    for definition in definitions:
        for text in field_texts(definition):
            found = split(text)
            terms.extend(map(number.__getitem__, found))
            counts.append(len(found))
    by_field = np.array(counts, np.int64).reshape(len(definitions), -1)
    rows = np.repeat(np.arange(len(definitions)), by_field.sum(axis=1))
    return Occurrences(
        keys=np.fromiter(map(key_of, number), np.uint64, len(number)),
        terms=np.array(terms, np.int64),
        rows=rows,
        amounts=np.repeat(steps(by_field).ravel(), by_field.ravel()),
    )


def _rarity(count: int, total: int) -> float:
    """The inverse document frequency of BM25, never negative."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))
