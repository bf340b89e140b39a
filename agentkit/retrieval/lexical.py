"""``LexicalChannel``: which words a definition holds, weighted by field (BM25F)."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkit.retrieval.index import Inverted, Part, Rows, ToolIndex, key_of, rarity
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 3
"""Raise it when ``terms``, ``field_texts`` or the formula gives other weights than before."""

_LONGEST_QUERY = 64
"""Terms of a query that are looked up; of a longer one the rarest."""

_NUMBER = 0.5
"""The weight of a number in a query."""

_FULL = 65_535
"""The weight 1 as it is kept. 8 bits would do for recall but let twice as many scores tie."""


_WEIGHTS = (2.0, 1.0, 0.5, 0.25)
"""How much one occurrence of a term counts, in the order of ``field_texts``. On the development
parts of three public catalogues no change of a single one by a third to a factor of two moved
recall@5 by more than about a point."""

_SATURATION = 0.9
"""k1 of BM25: how soon further occurrences of a term stop counting."""

_LENGTH_NORMALISATION = 0.4
"""b of BM25: how much a long field is held against its terms, 0 to 1."""

_LENGTHS = (3.0, 14.0, 5.0, 26.0)
"""How many terms a field of middling length has; longer ones count their terms less. They are
fixed, where BM25 takes the averages of the catalogue: so that what is kept about one tool does not
move when another is added."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Postings:
    """An inverted file over the rows of one segment.

    Attributes:
        inverted: Which postings each key has.
        rows: int64[postings], ascending within a key.
        weights: float32[postings], between 0 and 1.
    """

    inverted: Inverted
    rows: NDArray[np.int64]
    weights: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class LexicalChannel:
    """BM25F: for each term the tools that hold it, with a weight worked out in advance.

    The field-weighted term frequency is saturated once, over all fields together (Robertson,
    Zaragoza and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004, with
    each field's length normalised as in BM25F of TREC-13, against fixed lengths instead of the
    averages). The rarity of a term is worked out at query time, from exact counts.

    Example:
        >>> from agentkit import Library
        >>> from agentkit.retrieval.index import IndexConfig
        >>> area = ToolDefinition.from_schema("circle_area", "Area of a circle.", {})
        >>> time = ToolDefinition.from_schema("current_time", "The time in a city.", {})
        >>> words = LexicalChannel()
        >>> index = Library([area, time]).derived(IndexConfig(channels=(words,)))
        >>> scores = words.match(index, words.query("What time is it in Oslo?")).scores()
        >>> [index.names[row] for row, score in index.top(scores, 5)]
        ['current_time']
    """

    @property
    def fingerprint(self) -> str:
        """The version of the weights."""
        return f"lexical/{_VERSION}"

    def query(self, text: str) -> dict[str, float]:
        """The terms of a query in order, each with weight 1 however often it stands there.

        A number has half of it, as it is most often a value to call the tool with.

        Example:
            >>> LexicalChannel().query("convert 20 euros")
            {'convert': 1.0, '20': 0.5, 'euro': 1.0}
        """
        return {term: _NUMBER if term.isdigit() else 1.0 for term in terms(text)}

    def match(self, index: ToolIndex, terms: Mapping[str, float]) -> Matches:
        """All that the index says about some terms, read in one go.

        Args:
            index: An index that has this channel.
            terms: What is searched, each term with its weight. Of more than 64 the rarest count.
        """
        import numpy as np

        parts, counts = self._places(index, terms)
        known = [at for at, count in enumerate(counts) if count]
        if len(known) > _LONGEST_QUERY:
            known = sorted(sorted(known, key=counts.__getitem__)[:_LONGEST_QUERY])
        living, gain = len(index), _SATURATION + 1
        weights = list(terms.values())
        rows, steps, numbers = [], [], []
        for part, data, places in parts:
            for at in known:
                here = slice(*places[at])
                kept = data.rows[here]
                step = data.weights[here] * np.float32(
                    weights[at] * rarity(counts[at], living) * gain
                )
                if part.alive is not None:
                    alive = part.alive[kept]
                    kept, step = kept[alive], step[alive]
                rows.append(kept + part.offset)
                steps.append(step)
                numbers.append(at)
        return Matches(
            size=index.size,
            terms=tuple(terms),
            rows=np.concatenate([*rows, np.zeros(0, np.int64)]),
            steps=np.concatenate([*steps, np.zeros(0, np.float32)]),
            numbers=np.repeat(np.array(numbers, np.int64), [len(one) for one in rows]),
        )

    def unknown(self, index: ToolIndex, terms: Collection[str]) -> list[str]:
        """Those of ``terms`` that no tool holds."""
        counts = self._places(index, terms)[1]
        return [term for term, count in zip(terms, counts, strict=True) if not count]

    def _places(
        self, index: ToolIndex, terms: Collection[str]
    ) -> tuple[list[tuple[Part, Postings, list[tuple[int, int]]]], list[int]]:
        """The postings of each term in each segment, and the number of tools that hold it."""
        keys = [key_of(term) for term in terms]
        parts = [(part, data, data.inverted.find(keys)) for part, data in index.data(self)]
        counts = [0] * len(keys)
        for part, data, places in parts:
            for at, (start, end) in enumerate(places):
                if start < end:
                    counts[at] += part.count(data.rows[start:end])
        return parts, counts

    # --- keeping ----------------------------------------------------------------------------------

    def build(self, definitions: Sequence[ToolDefinition]) -> Rows:
        """The terms of some definitions, each with its saturated weight."""
        import numpy as np

        number: defaultdict[str, int] = defaultdict()
        number.default_factory = number.__len__  # a new term gets the next number
        found, lengths = array("l"), array("l")
        for definition in definitions:
            for text in field_texts(definition):
                split = terms(text)
                found.extend(map(number.__getitem__, split))
                lengths.append(len(split))
        by_field = np.array(lengths, np.int64).reshape(len(definitions), len(_LENGTHS))
        pairs = np.array(found, np.int64)  # row and term as one number, to add up what is equal
        pairs += np.repeat(np.arange(len(definitions)), by_field.sum(axis=1)) * max(len(number), 1)
        b = _LENGTH_NORMALISATION
        steps = np.array(_WEIGHTS) / (1 - b + b * by_field / np.array(_LENGTHS))
        distinct, places = np.unique(pairs, return_inverse=True)
        amounts = np.repeat(steps.ravel(), by_field.ravel())
        frequencies = np.bincount(places, amounts, len(distinct))
        owners, numbers = np.divmod(distinct, max(len(number), 1))
        keys = np.fromiter(map(key_of, number), np.uint64, len(number))
        weights = np.rint(frequencies / (_SATURATION + frequencies) * _FULL)
        return Rows(
            counts=np.bincount(owners, minlength=len(definitions)).astype(np.int32),
            arrays={"keys": keys[numbers], "weights": np.clip(weights, 1, _FULL).astype(np.uint16)},
        )

    def prepared(self, rows: Rows) -> Postings:
        """The inverted file."""
        import numpy as np

        inverted = Inverted.of(rows.arrays["keys"])
        return Postings(
            inverted=inverted,
            rows=rows.owners[inverted.order],
            weights=rows.arrays["weights"][inverted.order].astype(np.float32) / np.float32(_FULL),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Matches:
    """Which tools hold the terms of a query, and what each adds.

    Attributes:
        size: Rows of the index.
        terms: The terms of the query.
        rows: int64[matches]: a tool that holds a term.
        steps: float32[matches]: what the term adds to the score of that tool.
        numbers: int64[matches]: the place of the term in ``terms``.
    """

    size: int
    terms: tuple[str, ...]
    rows: NDArray[np.int64]
    steps: NDArray[np.float32]
    numbers: NDArray[np.int64]

    def of_terms(self, mask: Sequence[bool]) -> Matches:
        """Those of some of the terms."""
        import numpy as np

        kept = np.array(mask, bool)[self.numbers]
        return Matches(
            size=self.size,
            terms=self.terms,
            rows=self.rows[kept],
            steps=self.steps[kept],
            numbers=self.numbers[kept],
        )

    def scores(self, together: float = 0.0) -> NDArray[np.float64]:
        """float64[size]: how well each tool matches; 0 for one that shares no term.

        Args:
            together: The score is multiplied by the number of shared terms to this power. A sum of
                rarities lets one rare word, most often a name or a chance, outweigh two or three
                of what is wanted.
        """
        import numpy as np

        scores = np.bincount(self.rows, self.steps, self.size).astype(np.float64)
        if together:
            scores *= np.bincount(self.rows, minlength=self.size) ** together
        return scores

    def shared(self, rows: Sequence[int]) -> Iterator[tuple[str, ...]]:
        """The terms that each of some tools holds, in the order of the query."""
        import numpy as np

        mask = np.zeros(self.size, bool)
        mask[np.asarray(rows, np.int64)] = True
        here = mask[self.rows]
        found: dict[int, list[int]] = {}
        for row, number in zip(self.rows[here].tolist(), self.numbers[here].tolist(), strict=True):
            found.setdefault(row, []).append(number)
        for row in rows:
            yield tuple(self.terms[number] for number in sorted(found.get(row, ())))


def field_texts(definition: ToolDefinition) -> tuple[str, str, str, str]:
    """Name, description, names of parameters and texts of parameters, in the order of the weights.

    The description is the summary, the usage rules and the tags; parameters are those at any
    depth, and their texts hold the allowed values too.

    Example:
        >>> area = ToolDefinition.from_schema("area", "Of a circle.", {"properties": {"r": {}}})
        >>> field_texts(area)
        ('area', 'Of a circle.', 'r', '')
    """
    names: list[str] = []
    texts: list[str] = list(definition.description.parameters.values())
    for name, schema in _parameters(definition.known_signature.parameters):
        names.append(name)
        texts.extend(str(value) for value in schema.get("enum") or ())
    description = " ".join((definition.text, *definition.description.tags))
    return definition.name, description, " ".join(names), " ".join(texts)


def _parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each property of a schema with its name, through nested objects and arrays."""
    for name, part in (schema.get("properties") or {}).items():
        if isinstance(part, Mapping):
            yield name, part
            yield from _parameters(part)
    if isinstance(schema.get("items"), Mapping):
        yield from _parameters(schema["items"])
