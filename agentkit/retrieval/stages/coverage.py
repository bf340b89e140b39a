"""``Coverage``: of the tools ranked so far, those whose own words the request has all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit.errors import UsageError
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.lexical import LexicalChannel
from agentkit.retrieval.index.packing import pack_arrays, unpack_arrays
from agentkit.retrieval.index.postings import Postings, key_of
from agentkit.retrieval.survivors import Survivors
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentkit.retrieval.index.channel import Mask
    from agentkit.retrieval.index.tool_index import Part, ToolIndex


_VERSION = 2
"""Raise it when ``terms`` or what is kept of a tool changes."""

_SENTENCE_END = re.compile("(?<=[.!?])\\s|(?<=[\\u3002\\uff01\\uff1f])|\\n")
_LONGEST_SENTENCE = 240

_LOW_HALF = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnTerms:
    """The terms of each row's name and of its first sentence, each once, in that order.

    Attributes:
        keys: uint32[total]: the high halves of ``key_of`` of each term.
        starts: uint32[2 * rows + 1]; the name of row ``i`` is at ``starts[2*i]:starts[2*i + 1]``,
            its sentence at ``starts[2*i + 1]:starts[2*i + 2]``.
    """

    keys: NDArray[np.uint32]
    starts: NDArray[np.uint32]

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> OwnTerms:
        """From the keys of the name and of the sentence of each row, in turns."""
        import numpy as np

        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        keys = np.fromiter((key for keys in lists for key in keys), np.uint32, int(lengths.sum()))
        return cls(keys=keys, starts=_starts(lengths))

    def only(self, mask: Mask) -> OwnTerms:
        """The terms of the rows in ``mask``, which move up to close the gaps."""
        import numpy as np

        lengths = self.starts[1:].astype(np.int64) - self.starts[:-1]
        both = np.repeat(mask, 2)
        return OwnTerms(keys=self.keys[np.repeat(both, lengths)], starts=_starts(lengths[both]))


@dataclass(frozen=True, kw_only=True, slots=True)
class CoverageChannel:
    """Which share of a tool's name and first sentence the words of a request cover.

    A ranking by words asks how much of the request a tool has. This asks the other way round, as a
    request for several things at once has all the words of each tool it needs, among many others.
    Terms are weighed by their rarity, so that *get* and *information* cover little.

    It is meant for the candidates of a ranking, a hundred or so: the terms are kept by tool, not
    by term.

    Attributes:
        split: From text to terms.

    Example:
        >>> from agentkit import Library
        >>> from agentkit.retrieval.index.config import IndexConfig
        >>> area = ToolDefinition.from_schema("circle_area", "Area of a circle.", {})
        >>> time = ToolDefinition.from_schema("time", "Tell what time it is in a city.", {})
        >>> words, coverage = LexicalChannel(), CoverageChannel()
        >>> index = Library([area, time]).derived(IndexConfig(channels=(words, coverage)))
        >>> names, sentences = coverage.shares(index, words, ["city", "time", "oslo"], [0, 1])
        >>> names.tolist(), sentences.astype(float).round(2).tolist()
        ([0.0, 1.0], [0.0, 0.67])
    """

    split: Callable[[str], list[str]] = terms

    @property
    def fingerprint(self) -> str:
        """The version; "" with a ``split`` of one's own, whose meaning has no name."""
        return f"coverage/{_VERSION}" if self.split is terms else ""

    # --- answering --------------------------------------------------------------------------------

    def shares(
        self,
        index: ToolIndex,
        words: LexicalChannel,
        terms: Iterable[str],
        rows: Sequence[int],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The covered shares of the names, and of the first sentences, of the tools at ``rows``.

        Args:
            index: An index that has this channel and ``words``.
            words: Whose counts say how rare a term is.
            terms: The terms of the request, as ``split`` gives them.
            rows: Rows of tools.

        Returns:
            Two arrays float32[len(rows)] between 0 and 1; 0 for an empty name or sentence.
        """
        import numpy as np

        keys, lengths = self._gathered(index, rows)
        known, where = np.unique(keys, return_inverse=True)
        rarity = _rarities(_counts(index, words, known), len(index))
        asked = np.fromiter((key_of(term) >> _LOW_HALF for term in terms), np.uint32)
        covered = np.where(np.isin(known, asked), rarity, 0.0)
        slots = np.repeat(np.arange(len(lengths)), lengths)
        whole = np.bincount(slots, rarity[where], len(lengths))
        part = np.bincount(slots, covered[where], len(lengths))
        shares = np.divide(part, whole, out=np.zeros(len(lengths)), where=whole > 0)
        return shares[0::2].astype(np.float32), shares[1::2].astype(np.float32)

    def _gathered(
        self, index: ToolIndex, rows: Sequence[int]
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The keys of ``rows`` one behind the other, and how many are of each name and sentence."""
        import numpy as np

        wanted = np.asarray(rows, np.int64)
        lengths = np.zeros((len(wanted), 2), np.int64)
        pieces: list[tuple[NDArray[np.int64], NDArray[np.uint32]]] = []
        for part, data in index.data(self):
            here = np.flatnonzero((wanted >= part.offset) & (wanted < part.offset + part.size))
            if len(here):
                at = 2 * (wanted[here] - part.offset)
                lengths[here, 0] = data.starts[at + 1] - data.starts[at]
                lengths[here, 1] = data.starts[at + 2] - data.starts[at + 1]
                counts = lengths[here].sum(axis=1)
                keys = data.keys[_ranges(data.starts[at].astype(np.int64), counts)]
                pieces.append((np.repeat(here, counts), keys))
        if not pieces:
            return np.zeros(0, np.uint32), lengths.ravel()
        owners, keys = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return keys[np.argsort(owners, kind="stable")], lengths.ravel()

    # --- keeping ----------------------------------------------------------------------------------

    def build(self, definitions: Sequence[ToolDefinition]) -> OwnTerms:
        """The terms of some definitions."""
        known: dict[str, int] = {}
        texts = (
            text
            for definition in definitions
            for text in (definition.name, _first_sentence(definition.text))
        )
        return OwnTerms.of([self._keys(text, known) for text in texts])

    def merge(
        self, parts: Sequence[tuple[OwnTerms, Mask | None]], sizes: Sequence[int]
    ) -> OwnTerms:
        """The terms of several segments."""
        import numpy as np

        kept = [part if mask is None else part.only(mask) for part, mask in parts]
        lengths = [part.starts[1:].astype(np.int64) - part.starts[:-1] for part in kept]
        keys = [part.keys for part in kept]
        return OwnTerms(
            keys=np.concatenate(keys or [np.zeros(0, np.uint32)]),
            starts=_starts(np.concatenate(lengths or [np.zeros(0, np.int64)])),
        )

    def to_bytes(self, data: OwnTerms) -> bytes:
        """Both arrays."""
        return pack_arrays({"keys": data.keys, "starts": data.starts})

    def from_bytes(self, blob: bytes) -> OwnTerms:
        """The inverse of ``to_bytes``."""
        return OwnTerms(**unpack_arrays(blob))

    def _keys(self, text: str, known: dict[str, int]) -> list[int]:
        keys = []
        for term in dict.fromkeys(self.split(text)):
            if term not in known:
                known[term] = key_of(term) >> _LOW_HALF
            keys.append(known[term])
        return keys


def _first_sentence(text: str) -> str:
    return _SENTENCE_END.split(text.strip(), maxsplit=1)[0][:_LONGEST_SENTENCE]


def _counts(index: ToolIndex, words: LexicalChannel, keys: NDArray[np.uint32]) -> NDArray[np.int64]:
    """How many living tools hold each term.

    Terms with the same high half, one pair in a catalogue of 90,000 terms, are counted as one;
    whatever the segments, so an index that grew still answers like one made at once.
    """
    import numpy as np

    lowest = keys.astype(np.uint64) << np.uint64(_LOW_HALF)
    highest = lowest | np.uint64((1 << _LOW_HALF) - 1)
    counts = np.zeros(len(keys), np.int64)
    for part, postings in index.data(words):
        firsts = postings.starts[np.searchsorted(postings.keys, lowest)].astype(np.int64)
        ends = postings.starts[np.searchsorted(postings.keys, highest, "right")].astype(np.int64)
        counts += ends - firsts - _gone(part, postings, firsts, ends)
    return counts


def _gone(
    part: Part, postings: Postings, firsts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many of the postings in each of the ranges are of tools that this version lacks."""
    import numpy as np

    if part.alive is None:
        return np.zeros(len(firsts), np.int64)
    lengths = ends - firsts
    dead = ~part.alive[postings.rows[_ranges(firsts, lengths)]]
    return np.bincount(np.repeat(np.arange(len(lengths)), lengths)[dead], minlength=len(lengths))


def _ranges(firsts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of ranges, one behind the other."""
    import numpy as np

    before = np.cumsum(lengths) - lengths
    places: NDArray[np.int64] = np.arange(int(lengths.sum())) + np.repeat(firsts - before, lengths)
    return places


def _rarities(counts: NDArray[np.int64], total: int) -> NDArray[np.float64]:
    """The inverse document frequencies of BM25, never negative."""
    import numpy as np

    rarities: NDArray[np.float64] = np.log(1 + (total - counts + 0.5) / (counts + 0.5))
    return rarities


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    import numpy as np

    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)


class Coverage:
    """Adds to a ranking how much of a tool's name and first sentence the request covers.

    For requests that need several tools at once: such a request has all the words of each tool,
    among many others (``CoverageChannel``). It stands behind a ranking, and ranks no tool anew.

    It is not in the default. Behind the default ranking, on development splits, it raises recall@5
    on NESTful, whose requests need several calls each, by 3 points, with 0.15 for both by 4.6; on
    BFCL and Seal-Tools it changes less than chance does, with 0.15 it costs BFCL half a point. It
    takes an eighth of the time of a whole search.

    Args:
        name: What is added for a name that is covered as a whole; the best match of a ranking adds
            1.
        sentence: The same for the first sentence.
        words: Whose counts say how rare a term is; give the channel of the ranking when that is
            not the default one, so that there is one index of words.

    Raises:
        UsageError: A negative number.
    """

    def __init__(
        self, *, name: float = 0.05, sentence: float = 0.1, words: LexicalChannel | None = None
    ) -> None:
        if name < 0 or sentence < 0:
            raise UsageError(f"name={name} and sentence={sentence} must not be negative")
        self._name = name
        self._sentence = sentence
        self._words = words or LexicalChannel()
        self._coverage = CoverageChannel()
        self.channels = (self._words, self._coverage)

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Raise the ranked tools."""
        index = survivors.index
        found = [hit.definition.name for hit in survivors.hits]
        rows = {name: row for name in found if (row := index.row(name)) is not None}
        terms = self._words.query(goal.intent)
        names, sentences = self._coverage.shares(index, self._words, terms, [*rows.values()])
        added = (self._name * names + self._sentence * sentences).tolist()
        return survivors.add(dict(zip(rows, added, strict=True)), field="coverage")
