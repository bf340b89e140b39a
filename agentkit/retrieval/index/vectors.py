"""``VectorChannel``: what tools mean, as vectors of an embedding model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit.errors import UsageError
from agentkit.retrieval.embedders import Embedder, checked_rows
from agentkit.retrieval.index.channel import Mask
from agentkit.retrieval.index.packing import pack_arrays, unpack_arrays
from agentkit.retrieval.index.tool_index import Part, ToolIndex
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentkit.retrieval.embedders import FloatRows

_VERSION = 1
"""Raise it when ``vector_text`` or the way vectors are kept changes."""

_JOINTS = re.compile(r"[_.\-/]+")
_SENTENCE_END = re.compile("(?<=[.!?])\\s|(?<=[\u3002\uff01\uff1f])|\n")
_LONGEST_SENTENCE = 240

_RESCORED = 8
"""So many times the rows asked for are compared exactly, chosen by the signs of their numbers."""

_ALWAYS_RESCORED = 256
"""And never fewer than these, so that small catalogues are compared exactly throughout."""


_FAINTEST = 1e-30
"""A row without a larger number counts as zeros: it can not be divided by its length."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorRows:
    """The vectors of the tools of a segment: 292 bytes each at 256 dimensions.

    Attributes:
        codes: int8[tools, dimensions], each row scaled so that its largest number is 127.
        inverse_norms: float32[tools], 1 / length of the row in ``codes``; 0 for a row of zeros.
        signs: uint64[words, tools]: a bit for each number above 0, to find near ones fast.
    """

    codes: NDArray[np.int8]
    inverse_norms: NDArray[np.float32]
    signs: NDArray[np.uint64]

    @classmethod
    def of(cls, vectors: FloatRows) -> VectorRows:
        """The rows of an array, rounded to 8 bits.

        Example:
            >>> import numpy as np
            >>> rows = VectorRows.of(np.array([[3.0, -4.0], [0.0, 0.0]], np.float32))
            >>> rows.codes.tolist(), rows.signs.tolist()
            ([[95, -127], [0, 0]], [[1, 0]])
        """
        import numpy as np

        largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
        largest[largest < _FAINTEST] = 1
        codes = np.rint(vectors * (127 / largest)).astype(np.int8)
        lengths = np.linalg.norm(codes.astype(np.float32), axis=1)
        inverse = np.where(lengths > 0, 1 / np.maximum(lengths, 1), 0).astype(np.float32)
        return cls(codes=codes, inverse_norms=inverse, signs=_signs(codes > 0))

    def cosines(self, vectors: FloatRows, rows: NDArray[np.intp]) -> FloatRows:
        """float32[vectors, rows]: the cosine of each of ``vectors``, of length 1, to each row.

        The same for equal rows, wherever they stand and whatever else is compared: a product of
        matrices adds in an order that depends on its shape, so both sides are whole numbers small
        enough that no sum is rounded.
        """
        import numpy as np

        whole = np.rint(vectors * _largest_exact(vectors.shape[1])).astype(np.float32)
        lengths = np.sqrt((whole.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
        shares = (self.inverse_norms[rows] / np.maximum(lengths, 1)).astype(np.float32)
        cosines: FloatRows = (whole @ self.codes[rows].astype(np.float32).T) * shares
        return cosines


@dataclass(frozen=True, kw_only=True)
class VectorChannel:
    """A vector for each tool, of its name and the first sentence of its description.

    Longer texts were tried: the whole description and the names of parameters change recall@5 by
    less than half a point on two public catalogues and lose two points on a third.

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

    # --- answering --------------------------------------------------------------------------------

    def nearest(
        self, index: ToolIndex, vector: NDArray[np.float32], count: int, mask: Mask | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """The tools nearest to ``vector``, those with a cosine above 0.

        Exact while the index holds no more than 256 tools, or eight times ``count``. Beyond that
        the signs of the numbers choose what is compared, which reads 32 bytes a tool instead of
        256: with the packaged vectors over 10,660 tools and a count of 100, the nearest tool was
        kept for each of 400 requests, 99% of the ten nearest and 91% of the hundred nearest.

        Args:
            index: An index that has this channel.
            vector: float32[dimensions], of length 1, see ``query``.
            count: Most tools to give; more where the last ones tie.
            mask: bool[index.size], rows in question; None for all.

        Returns:
            Rows, ascending, and the cosine of each.
        """
        import numpy as np

        rows = self._likely(index, vector, max(_ALWAYS_RESCORED, _RESCORED * count), mask)
        cosines = self.cosines(index, vector[None], rows)[0]
        bound = np.partition(cosines, -count)[-count] if len(rows) > count else 0.0
        kept = (cosines >= bound) & (cosines > 0)
        return rows[kept], cosines[kept]

    def _likely(
        self, index: ToolIndex, vector: NDArray[np.float32], count: int, mask: Mask | None
    ) -> NDArray[np.intp]:
        """Rows, at least ``count`` if there are so many, whose signs are most like the vector's."""
        import numpy as np

        if not vector.any() or not index.size:
            return np.zeros(0, np.intp)
        mask = index.alive if mask is None and len(index) < index.size else mask
        if index.size <= count:
            return np.arange(index.size) if mask is None else np.flatnonzero(mask)
        for _, data in index.data(self):
            _check_dimensions(len(vector), data.codes.shape[1])
        differing = np.concatenate([_differing(data.signs, vector) for _, data in index.data(self)])
        if mask is not None:
            differing[~mask] = np.iinfo(differing.dtype).max
        up_to = np.cumsum(np.bincount(differing))
        bound = int(np.searchsorted(up_to, count))
        return np.flatnonzero(differing <= min(bound, len(vector)))

    def cosines(self, index: ToolIndex, vectors: FloatRows, rows: NDArray[np.intp]) -> FloatRows:
        """How alike texts and tools are.

        Args:
            index: An index that has this channel.
            vectors: float32[texts, dimensions], see ``query``.
            rows: Rows of the index, ascending.

        Returns:
            float32[texts, rows], -1 to 1; 0 where the model knows nothing.
        """
        import numpy as np

        found = np.zeros((len(vectors), len(rows)), np.float32)
        for part, data, here in self._within(index, rows):
            _check_dimensions(vectors.shape[1], data.codes.shape[1])
            found[:, here] = data.cosines(vectors, rows[here] - part.offset)
        return found

    def _within(
        self, index: ToolIndex, rows: NDArray[np.intp]
    ) -> Iterator[tuple[Part, VectorRows, slice]]:
        """The segments that hold some of ``rows``, and which of these."""
        import numpy as np

        for part, data in index.data(self):
            start, stop = np.searchsorted(rows, (part.rows.start, part.rows.stop)).tolist()
            if start < stop:
                yield part, data, slice(start, stop)

    # --- keeping ----------------------------------------------------------------------------------

    def build(self, definitions: Sequence[ToolDefinition]) -> VectorRows:
        """The vectors of some definitions."""
        texts = [vector_text(one) for one in definitions]
        return VectorRows.of(checked_rows(self.embedder.embed(texts), len(texts)))

    def merge(
        self, parts: Sequence[tuple[VectorRows, Mask | None]], sizes: Sequence[int]
    ) -> VectorRows:
        """The vectors of several segments."""
        import numpy as np

        for part, _ in parts[1:]:
            _check_dimensions(part.codes.shape[1], parts[0][0].codes.shape[1])
        kept = [(part, slice(None) if mask is None else mask) for part, mask in parts]
        return VectorRows(
            codes=np.concatenate([part.codes[mask] for part, mask in kept]),
            inverse_norms=np.concatenate([part.inverse_norms[mask] for part, mask in kept]),
            signs=np.concatenate([part.signs[:, mask] for part, mask in kept], axis=1),
        )

    def to_bytes(self, data: VectorRows) -> bytes:
        """All three arrays."""
        return pack_arrays({name: getattr(data, name) for name in VectorRows.__slots__})

    def from_bytes(self, blob: bytes) -> VectorRows:
        """The inverse of ``to_bytes``."""
        return VectorRows(**unpack_arrays(blob))


def _largest_exact(dimensions: int) -> float:
    """What a vector of length 1 can be scaled by before its products with ``codes`` are rounded.

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
    """What of a tool is embedded: ``name: first sentence``, identifiers in words."""
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


def _differing(signs: NDArray[np.uint64], vector: NDArray[np.float32]) -> NDArray[np.uint16]:
    """uint16[rows]: in how many numbers the sign of a row is not that of ``vector``."""
    import numpy as np

    wanted = _signs(vector[None, :] > 0)[:, 0]
    total = np.zeros(signs.shape[1], np.uint16)
    for word, want in zip(signs, wanted, strict=True):
        total += _ones(word ^ want)
    return total


def _ones(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """How many bits of each word are set."""
    import numpy as np

    if hasattr(np, "bitwise_count"):  # from numpy 2.0 on
        return np.bitwise_count(words)
    of_byte = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1, dtype=np.uint8)
    counts: NDArray[np.uint8] = of_byte[words.view(np.uint8).reshape(-1, 8)].sum(1, dtype=np.uint8)
    return counts
