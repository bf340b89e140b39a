"""``VectorChannel``: what tools mean, as vectors of an embedding model."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit.errors import UsageError
from agentkit.retrieval.embedders import Embedder, checked_rows
from agentkit.retrieval.index import Rows, ToolIndex, key_of
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentkit.retrieval.embedders import FloatRows
    from agentkit.retrieval.index import Mask

_VERSION = 2
"""Raise it when ``vector_text`` or the way vectors are kept changes."""

_JOINTS = re.compile(r"[_.\-/]+")
_SENTENCE_END = re.compile("(?<=[.!?])\\s|(?<=[\u3002\uff01\uff1f])|\n")
_LONGEST_SENTENCE = 240

_RESCORED = 8
"""So many times the rows asked for are compared exactly, chosen by the signs of their numbers."""

_ALWAYS_RESCORED = 256
"""And never fewer than these, so that small catalogues are compared exactly throughout."""

_SAMPLE = 512
"""Tools whose cosines say how alike a request is to any tool: see ``VectorChannel.usual``."""

_FAINTEST = 1e-30
"""A row without a larger number counts as zeros: it cannot be divided by its length."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Vectors:
    """The vectors of the tools of a segment: 300 bytes each at 256 dimensions.

    Attributes:
        codes: int8[tools, dimensions], each row scaled so that its largest number is 127.
        inverse_norms: float32[tools], 1 / length of the row in ``codes``; 0 for a row of zeros.
        signs: uint64[words, tools]: a bit for each number above 0, to find near ones fast.
        draws: uint64[tools]: a hash of what was embedded, which chooses samples.
    """

    codes: NDArray[np.int8]
    inverse_norms: NDArray[np.float32]
    signs: NDArray[np.uint64]
    draws: NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class VectorChannel:
    """A vector for each tool, of its name and the first sentence of its description.

    Longer texts were tried: the whole description, with and without the names of parameters,
    gains at most half a point of recall@5 on four of five public catalogues and loses three to
    sixteen on the fifth.

    Attributes:
        embedder: The model. Equal models share data, so pass the same object to all retrievers.
    """

    embedder: Embedder

    @property
    def fingerprint(self) -> str:
        """The model's."""
        return f"vectors/{_VERSION}/{self.embedder.fingerprint}"

    def query(self, texts: Sequence[str]) -> FloatRows:
        """The vectors of texts at length 1; a text that the model does not know stays at zeros.

        Raises:
            UsageError: The model gives something else than a row of finite numbers a text.
        """
        import numpy as np

        vectors = checked_rows(self.embedder.embed(texts), len(texts))
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        units: FloatRows = (vectors / lengths).astype(np.float32, copy=False)
        return units

    def nearest(
        self, index: ToolIndex, vector: NDArray[np.float32], count: int, mask: Mask | None = None
    ) -> NDArray[np.int64]:
        """The rows of the tools nearest to ``vector``, those with a cosine above 0.

        Exact while the index holds no more than 256 tools, or eight times ``count``. Beyond that
        the signs of the numbers choose what is compared, which reads 32 bytes a tool instead of
        256: with the packaged vectors over 10,660 tools and a count of 100, the nearest tool was
        kept for each of 400 requests, 99% of the ten nearest and 91% of the hundred nearest.

        Args:
            index: An index that has this channel.
            vector: float32[dimensions], see ``query``.
            count: Most rows to give.
            mask: bool[size]: the rows in question; None for all that are alive.
        """
        import numpy as np

        likely = self._likely(index, vector, max(_RESCORED * count, _ALWAYS_RESCORED), mask)
        cosines = self.cosines(index, vector[None, :], likely)[0]
        if len(likely) > count:
            lowest = np.partition(cosines, -count)[-count]
            likely, cosines = likely[cosines >= lowest], cosines[cosines >= lowest]
        found: NDArray[np.int64] = likely[cosines > 0]
        return found

    def _likely(
        self, index: ToolIndex, vector: NDArray[np.float32], count: int, mask: Mask | None
    ) -> NDArray[np.int64]:
        """Rows, at least ``count`` if there are so many, whose signs are most like the vector's."""
        import numpy as np

        mask = index.alive if mask is None else mask
        if not vector.any() or not index.size:
            return np.zeros(0, np.int64)
        if index.size <= count:
            return np.flatnonzero(mask)
        for _, data in index.data(self):
            _check_dimensions(len(vector), data.codes.shape[1])
        query = _signs(vector[None, :] > 0)[:, 0]
        differing = np.concatenate([_differing(data.signs, query) for _, data in index.data(self)])
        differing[~mask] = np.iinfo(differing.dtype).max
        up_to = np.cumsum(np.bincount(differing))
        bound = int(np.searchsorted(up_to, count))
        return np.flatnonzero(differing <= min(bound, len(vector)))

    def cosines(self, index: ToolIndex, vectors: FloatRows, rows: NDArray[np.int64]) -> FloatRows:
        """The likeness of texts and tools.

        The same for equal tools, wherever they stand and whatever else is compared: a product of
        matrices adds in an order that depends on its shape, so both sides are whole numbers small
        enough that no sum is rounded.

        Args:
            index: An index that has this channel.
            vectors: float32[texts, dimensions], see ``query``.
            rows: Rows of the index.

        Returns:
            float32[texts, rows], -1 to 1; 0 where the model knows nothing.
        """
        import numpy as np

        whole = np.rint(vectors * _largest_exact(vectors.shape[1])).astype(np.float32)
        lengths = np.sqrt((whole.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
        found = np.zeros((len(vectors), len(rows)), np.float32)
        for part, data in index.data(self):
            _check_dimensions(vectors.shape[1], data.codes.shape[1])
            here = np.flatnonzero((rows >= part.rows.start) & (rows < part.rows.stop))
            inside = rows[here] - part.offset
            shares = (data.inverse_norms[inside] / np.maximum(lengths, 1)).astype(np.float32)
            found[:, here] = (whole @ data.codes[inside].astype(np.float32).T) * shares
        return found

    def usual(
        self, index: ToolIndex, vectors: FloatRows
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mean and variance of the cosines of texts to the tools of a catalogue, float32[texts].

        Taken over all tools, of more than 512 over those whose hashes are the lowest; so they
        depend on the catalogue alone and not on how its index grew.
        """
        sample = index.once((self, "sample"), lambda: self._sample(index))
        _check_dimensions(vectors.shape[1], sample.shape[1])
        cosines = vectors @ sample.T
        return cosines.mean(axis=1), cosines.var(axis=1)

    def _sample(self, index: ToolIndex) -> FloatRows:
        """The vectors of the sample at length 1, in the order of their hashes."""
        import numpy as np

        parts = list(index.data(self))
        draws = np.concatenate([data.draws for _, data in parts])
        rows = np.flatnonzero(index.alive)
        rows = rows[np.argsort(draws[rows], kind="stable")[:_SAMPLE]]
        found = np.zeros((len(rows), parts[0][1].codes.shape[1]), np.float32)
        for part, data in parts:
            here = np.flatnonzero((rows >= part.rows.start) & (rows < part.rows.stop))
            inside = rows[here] - part.offset
            found[here] = data.codes[inside] * data.inverse_norms[inside, None]
        return found

    # --- keeping ----------------------------------------------------------------------------------

    def build(self, definitions: Sequence[ToolDefinition]) -> Rows:
        """The vectors of some definitions, rounded to 8 bits."""
        import numpy as np

        texts = [vector_text(one) for one in definitions]
        vectors = (
            checked_rows(self.embedder.embed(texts), len(texts)) if texts else np.zeros((0, 1))
        )
        largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
        largest[largest < _FAINTEST] = 1
        draws = np.fromiter(map(key_of, texts), np.uint64, len(texts))
        return Rows.single(codes=np.rint(vectors * (127 / largest)).astype(np.int8), draws=draws)

    def prepared(self, rows: Rows) -> Vectors:
        """The values with lengths and signs."""
        import numpy as np

        codes = rows.arrays["codes"]
        lengths = np.linalg.norm(codes.astype(np.float32), axis=1)
        inverse = np.where(lengths > 0, 1 / np.maximum(lengths, 1), 0).astype(np.float32)
        return Vectors(
            codes=codes, inverse_norms=inverse, signs=_signs(codes > 0), draws=rows.arrays["draws"]
        )


def _largest_exact(dimensions: int) -> float:
    """The largest scale of a vector of length 1 whose products with ``codes`` stay exact.

    float32 has all whole numbers up to 2 ** 24. A row of codes has a length of at most 127 times
    the root of the dimensions, rounding adds half that root to the scaled vector, and no product,
    nor a part of its sum, is larger than both lengths multiplied (Cauchy and Schwarz).
    """
    root = math.sqrt(dimensions)
    return max(2**24 / (127 * root) - root / 2, 1.0)


def _check_dimensions(now: int, before: int) -> None:
    if now != before:
        raise UsageError(
            f"the embedding model gave vectors of {now} and of {before} numbers; it must give one "
            "length always, and another model needs another fingerprint (a FunctionEmbedder takes "
            "a name)"
        )


def vector_text(definition: ToolDefinition) -> str:
    """The text of a tool to embed: ``name: first sentence``, identifiers in words."""
    name = _JOINTS.sub(" ", definition.name)
    sentence = _SENTENCE_END.split(definition.text.strip(), maxsplit=1)[0]
    return f"{name}: {sentence[:_LONGEST_SENTENCE]}"


def _signs(above: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """uint64[words, rows] with the bits of bool[rows, dimensions]."""
    import numpy as np

    bits = np.packbits(above, axis=1, bitorder="little")
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _differing(signs: NDArray[np.uint64], query: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """uint16[rows]: in how many numbers the sign of a row is not the wanted one."""
    import numpy as np

    total = np.zeros(signs.shape[1], np.uint16)
    for word, want in zip(signs, query, strict=True):
        total += np.bitwise_count(word ^ want)
    return total
