"""``LexicalChannel``: which words a definition holds, weighted by field (BM25F)."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, TypeAlias

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

_NUMBER = 0.5
"""The weight of a number in a query."""


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
        """The terms of a query in order, each with weight 1 however often it stands there.

        A number has half of it, as it is most often a value to call the tool with.

        Example:
            >>> LexicalChannel().query("convert 20 euros")
            {'convert': 1.0, '20': 0.5, 'euro': 1.0}
        """
        return {term: _NUMBER if term.isdigit() else 1.0 for term in self.split(text)}

    # --- answering --------------------------------------------------------------------------------

    def scores(self, index: ToolIndex, terms: Mapping[str, float]) -> NDArray[np.float32]:
        """How well each tool matches; 0 for one that shares no term.

        Args:
            index: An index that has this channel.
            terms: What is searched, each term with its weight. Of more than 64 the rarest count.

        Returns:
            float32[index.size]. Comparable within one query only.
        """
        return self.read(index, terms).scores()

    def document_frequency(self, index: ToolIndex, term: str) -> int:
        """How many tools hold the term."""
        return sum(self._places(index, [term])[1])

    def unknown(self, index: ToolIndex, terms: Mapping[str, float]) -> list[str]:
        """Those of ``terms`` that no tool holds."""
        counts = self._places(index, terms)[1]
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

    def read(self, index: ToolIndex, terms: Mapping[str, float]) -> Matches:
        """All that the index says about some terms, read in one go.

        Args:
            index: An index that has this channel.
            terms: What is searched, each term with its weight. Of more than 64 the rarest count.
        """
        parts, counts = self._places(index, terms)
        gains = [
            weight * _rarity(count, len(index)) * (self.saturation + 1) if count else 0.0
            for weight, count in zip(terms.values(), counts, strict=True)
        ]
        counted = [at for at, gain in enumerate(gains) if gain]
        if len(counted) > _LONGEST_QUERY:
            counted = sorted(sorted(counted, key=counts.__getitem__)[:_LONGEST_QUERY])
        return Matches(
            size=index.size,
            terms=len(gains),
            parts=tuple(
                _PartMatches.of(part, data, {at: places[at] for at in counted}, gains)
                for part, data, places in parts
            ),
        )

    def _places(self, index: ToolIndex, terms: Collection[str]) -> tuple[list[_Places], list[int]]:
        """Where the postings of each term are in each segment, and how many tools hold it."""
        import numpy as np

        keys = np.fromiter(map(key_of, terms), np.uint64, len(terms))
        parts = [(part, data, data.find(keys)) for part, data in index.data(self)]
        counts = [0] * len(keys)
        for part, data, places in parts:
            for at, place in enumerate(places):
                if place is not None:
                    counts[at] += part.count(data.rows[slice(*place)])
        return parts, counts

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


_Places: TypeAlias = tuple[Part, Postings, list[tuple[int, int] | None]]
"""A segment, its postings, and where in these each term is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Matches:
    """What the terms of one query add to the scores of the tools that hold them.

    Attributes:
        size: Rows of the index.
        terms: How many terms the query has.
        parts: By segment.
    """

    size: int
    terms: int
    parts: tuple[_PartMatches, ...]

    def scores(self) -> NDArray[np.float32]:
        """float32[size]: how well each tool matches; 0 for one that shares no term."""
        import numpy as np

        scores = np.zeros(self.size, np.float32)
        for one in self.parts:
            view = scores[one.part.rows]
            np.add.at(view, one.rows, one.steps)
            if one.part.alive is not None:
                view *= one.part.alive
        return scores

    def contributions(self, rows: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float32]:
        """What each term adds to the scores of a few tools.

        Args:
            rows: Rows of tools, in ascending order.

        Returns:
            float32[terms, rows]; over the terms it adds up to ``scores`` at these rows.
        """
        import numpy as np

        table = np.zeros((self.terms, len(rows)), np.float32)
        wanted = np.asarray(rows, np.intp)
        for one in self.parts:
            start, stop = wanted.searchsorted((one.part.rows.start, one.part.rows.stop)).tolist()
            if start < stop:
                one.enter(table[:, start:stop], wanted[start:stop] - one.part.offset)
        return table


@dataclass(frozen=True, kw_only=True, slots=True)
class _PartMatches:
    """The postings of some terms in one segment, one behind the other.

    Attributes:
        part: The segment.
        terms: The numbers of the terms, ascending.
        ends: int64[terms]: where the postings of each term end.
        rows: intp[postings], rows of the segment.
        steps: float32[postings]: what each adds to the score of its row.
    """

    part: Part
    terms: NDArray[np.intp]
    ends: NDArray[np.int64]
    rows: NDArray[np.intp]
    steps: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        part: Part,
        data: Postings,
        places: Mapping[int, tuple[int, int] | None],
        gains: Sequence[float],
    ) -> _PartMatches:
        """The postings at some places, with the gain of each term."""
        import numpy as np

        found = {term: place for term, place in places.items() if place is not None}
        lengths = [end - start for start, end in found.values()]
        rows, weights = data.at(list(found.values()))
        of_term = np.array([gains[term] / FULL for term in found], np.float32)
        return cls(
            part=part,
            terms=np.array(list(found), np.intp),
            ends=np.cumsum(lengths, dtype=np.int64),
            rows=rows.astype(np.intp),
            steps=np.multiply(weights, np.repeat(of_term, lengths), dtype=np.float32),
        )

    def enter(self, table: NDArray[np.float32], wanted: NDArray[np.intp]) -> None:
        """Write the steps of some rows, in ascending order, into a table of terms and rows."""
        import numpy as np

        asked = np.zeros(self.part.size, bool)
        asked[wanted] = True
        hits = np.flatnonzero(asked[self.rows])
        terms = self.terms[self.ends.searchsorted(hits, "right")]
        table[terms, wanted.searchsorted(self.rows[hits])] = self.steps[hits]


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
