"""``Examples``: tools whose worked calls answered requests like this one (L4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.index import Inverted, Part, Rows, ToolIndex, key_of, rarity
from agentkit.retrieval.retriever import SubGoal
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 2
"""Raise it when ``terms`` or what is kept of an example changes."""

_LONGEST_QUERY = 64
"""Different terms of a request that are looked up, the first ones."""

_SAMPLE = 128
"""Examples that are asked to see how far the others are to be believed."""

_BELIEVED = 16
"""A library with few examples is believed: it counts as if so many more had been right."""

_CHANCE, _SURE = 0.5, 0.85
"""Between these reliabilities the weight of examples rises."""

_MOST_ALIKE = 8
"""So many tools may have been right for one request; beyond them each counts less."""

_LEAST = 0.05
"""Less alike than this is chance: one or two shared words of a sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExamplePostings:
    """Which examples of a segment hold which term.

    Attributes:
        inverted: Which postings each term has.
        places: int64[postings]: the example of each, numbered within the segment.
        owners: int64[examples]: the row of the tool that an example belongs to, ascending.
        lengths: int64[examples]: how many different terms an example has.
        keys: uint64[postings]: the terms of the examples, one example behind the other.
        texts: uint64[examples]: the same number for the same terms.
    """

    inverted: Inverted
    places: NDArray[np.int64]
    owners: NDArray[np.int64]
    lengths: NDArray[np.int64]
    keys: NDArray[np.uint64]
    texts: NDArray[np.uint64]

    def terms_of(self, example: int) -> list[int]:
        """The terms of one example."""
        end = int(self.lengths[: example + 1].sum())
        terms: list[int] = self.keys[end - int(self.lengths[example]) : end].tolist()
        return terms


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleChannel:
    """The likeness of a request to the requests a tool's worked calls answered.

    A tool is as like a request as its most alike example is. Examples are not poured together into
    one field: then a tool with many of them would share some word with every request, which on
    requests for several tools costs more than examples gain. The likeness of a request q and an
    example e lies between 0 and 1::

        rarity(q and e) / rarity(q)  *  |q and e| / |e|

    the share of the request that the example has, terms weighed by how few examples hold them,
    times the share of the example that the request has. It is 1 for the same words, and small
    for a few shared ones; it is not stretched so that the best tool always has 1.

    Attributes:
        most: Examples of one tool that count, the last ones.
    """

    most: int = 32

    @property
    def fingerprint(self) -> str:
        """Every setting."""
        return f"examples/{_VERSION}/{self.most}"

    def is_empty(self, index: ToolIndex) -> bool:
        """Whether no tool has an example with a request."""
        return all(not len(data.owners) for _, data in index.data(self))

    def scores(self, index: ToolIndex, text: str) -> NDArray[np.float64]:
        """The likeness of each tool's most alike example.

        Args:
            index: An index that has this channel.
            text: The request, or a step of it.

        Returns:
            float64[index.size], between 0 and 1; 0 for a tool without examples.
        """
        import numpy as np

        scores = np.zeros(index.size)
        for part, data, likeness in self._likeness(index, [*self._keys(text, {})]):
            np.maximum.at(scores[part.rows], data.owners, likeness)
        return scores

    def reliability(self, index: ToolIndex) -> float:
        """How often the most alike other example belongs to the same tool, between 0 and 1.

        Worked out once for a version of the library, from up to 128 examples, each asked without
        those of the same words. It is near 1 where users ask the same again with other values, and
        below a half where each asks for something else.
        """
        return index.once((self, "reliability"), lambda: self._reliability(index))

    def _reliability(self, index: ToolIndex) -> float:
        import numpy as np

        parts = list(index.data(self))
        living = [data.texts[index.alive[part.rows][data.owners]] for part, data in parts]
        texts = np.unique(np.concatenate([*living, np.zeros(0, np.uint64)]))[:_SAMPLE]
        right: list[bool] = []
        for text in texts:
            owners: set[int] = set()
            keys: list[int] = []
            for part, data in parts:
                same = np.flatnonzero(data.texts == text)
                owners.update((data.owners[same] + part.offset).tolist())
                keys = data.terms_of(int(same[0])) if len(same) else keys
            best, row = 0.0, -1
            for part, data, likeness in self._likeness(index, keys):
                likeness[data.texts == text] = 0
                at = int(likeness.argmax())
                if likeness[at] > best:
                    best, row = float(likeness[at]), part.offset + int(data.owners[at])
            if best:
                right.append(row in owners)
        return (sum(right) + _BELIEVED) / (len(right) + _BELIEVED)

    def _likeness(
        self, index: ToolIndex, keys: Sequence[int]
    ) -> Iterator[tuple[Part, ExamplePostings, NDArray[np.float64]]]:
        """How like each example of each segment is to a text of these terms; 0 for removed ones."""
        import numpy as np

        found, total = self._found(index, keys)
        counts = (map(len, of_part) for _, _, of_part in found)
        rarities = [rarity(sum(of_key), total) for of_key in zip(*counts, strict=True)]
        mass = sum(rarities)
        for part, data, of_part in found:
            if mass and len(data.owners):
                places = np.concatenate([*of_part, np.zeros(0, np.int64)])
                weights = np.repeat(rarities, [len(one) for one in of_part])
                shared = np.bincount(places, weights, len(data.owners))
                common = np.bincount(places, minlength=len(data.owners))
                yield part, data, shared / mass * common / data.lengths

    def unknown(self, index: ToolIndex, terms: Sequence[str]) -> list[str]:
        """Those of ``terms`` that no example of a tool of this version holds."""
        found, _ = self._found(index, [key_of(term) for term in terms])
        return [
            term
            for at, term in enumerate(terms)
            if not any(len(of_part[at]) for _, _, of_part in found)
        ]

    def _found(
        self, index: ToolIndex, keys: Sequence[int]
    ) -> tuple[list[tuple[Part, ExamplePostings, list[NDArray[np.int64]]]], int]:
        """The live examples that hold each key, by segment, and the number of examples."""
        found, total = [], 0
        for part, data in index.data(self):
            alive = None if part.alive is None else part.alive[data.owners]
            total += len(data.owners) if alive is None else int(alive.sum())
            places = [data.places[slice(*place)] for place in data.inverted.find(keys)]
            if alive is not None:
                places = [one[alive[one]] for one in places]
            found.append((part, data, places))
        return found, total

    def _keys(self, text: str, known: dict[str, int]) -> Iterator[int]:
        """The keys of a text's terms; ``known`` remembers those of terms that come again."""
        for term in islice(dict.fromkeys(terms(text)), _LONGEST_QUERY):
            if term not in known:
                known[term] = key_of(term)
            yield known[term]

    # --- keeping ----------------------------------------------------------------------------------

    def build(self, definitions: Sequence[ToolDefinition]) -> Rows:
        """The terms of the requests, each with the number of its example within the tool."""
        import numpy as np

        known: dict[str, int] = {}
        counts: list[int] = []
        keys: list[int] = []
        numbers: list[int] = []
        for definition in definitions:
            before = len(keys)
            texts = dict.fromkeys(one.query for one in definition.examples if one.query)
            for number, text in enumerate([*texts][-self.most :]):
                for key in dict.fromkeys(self._keys(text, known)):
                    keys.append(key)
                    numbers.append(number)
            counts.append(len(keys) - before)
        return Rows(
            counts=np.array(counts, np.int32),
            arrays={"keys": np.array(keys, np.uint64), "numbers": np.array(numbers, np.uint16)},
        )

    def prepared(self, rows: Rows) -> ExamplePostings:
        """The inverted file over examples."""
        import numpy as np

        keys, numbers = rows.arrays["keys"], rows.arrays["numbers"].astype(np.int64)
        of_example = rows.owners << 16 | numbers  # ascending: examples stand one behind the other
        examples, firsts, places = np.unique(of_example, return_index=True, return_inverse=True)
        inverted = Inverted.of(keys)
        return ExamplePostings(
            inverted=inverted,
            places=places[inverted.order],
            owners=examples >> 16,
            lengths=np.bincount(places, minlength=len(examples)),
            keys=keys,
            texts=np.add.reduceat(keys, firsts) if len(firsts) else keys,
        )


class Examples:
    """Lifts tools whose worked examples are like the request, as far as they are reliable.

    Both the step and the whole request are compared, the better one counts: examples that come
    from episodes hold whole requests, those that people write hold single steps. Without examples
    the candidates pass untouched; no tool is dropped.

    A tool that was taught takes the place of one that was not, and only where requests come again
    is that worth much. So an example with the very words of the request adds ``weight``, and up to
    1 more as the examples of the library predict each other (``ExampleChannel.reliability``):
    nothing up to a half, all from .85 on. Half of the requests as examples of their gold tools,
    the other half asked: docs/retrieval.md has what that brings, and what tools
    without examples pay. Where more than eight tools have examples that are alike, these say little
    of which one is meant, and add less: a stranger's tools could all claim the same requests.

    Args:
        weight: What an example with the very words of the request adds at least.
        keep: How many tools it ranks at most.
    """

    name = "examples"

    def __init__(self, *, weight: float = 0.5, keep: int = 32) -> None:
        self._weight = weight
        self._keep = keep
        self._examples = ExampleChannel()
        self.channels = (self._examples,)

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Add to the scores of tools by how alike their most alike example is."""
        import numpy as np

        index = candidates.index
        if self._examples.is_empty(index):
            return candidates
        scores = self._examples.scores(index, goal.intent)
        if goal.intent != query:
            scores = np.maximum(scores, self._examples.scores(index, query))
        reliable = (self._examples.reliability(index) - _CHANCE) / (_SURE - _CHANCE)
        weight = self._weight + min(max(reliable, 0.0), 1.0)
        found = index.top(scores, self._keep, candidates.mask)
        alike = sum(score > found[0][1] / 2 for _, score in found)
        weight *= min(1.0, _MOST_ALIKE / max(alike, 1))
        return candidates.add(
            {index.names[row]: weight * score for row, score in found if score >= _LEAST},
            reason="worked for a request like this",
            field="examples",
        )
