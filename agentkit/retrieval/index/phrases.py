"""Finding any of many phrases in a text, by the hashes of all stretches of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 2**64)
"""Powers of an odd number can be divided by modulo 2**64, so that a stretch hashes the same
wherever it stands."""


class Spans:
    """The stretches of a text that could be a phrase, hashed.

    A phrase is not looked for inside an ASCII word: ``aid`` is not in ``aide``.

    Args:
        text: Without capitals.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _sums(self) -> Words:
        import numpy as np

        codes = _codes(self.text)
        return np.concatenate([np.zeros(1, np.uint64), np.cumsum(codes * _powers(len(codes)))])

    @cached_property
    def _divisors(self) -> Words:
        return _powers(len(self.text) + 1, base=_INVERSE)

    @cached_property
    def _beside_words(self) -> NDArray[np.bool_]:
        """bool[len + 2]: whether a character of an ASCII word stands there, from place -1 on."""
        import numpy as np

        inside = np.fromiter(map(_is_word, self.text), bool, len(self.text))
        return np.concatenate([[False], inside, [False]])

    def of_length(self, length: int) -> tuple[NDArray[np.int64], Words]:
        """Starts and hashes of the stretches of so many characters."""
        import numpy as np

        words = self._beside_words
        starts = np.flatnonzero(~(words[: -length - 1] | words[length + 1 :]))
        sums = self._sums
        return starts, (sums[starts + length] - sums[starts]) * self._divisors[starts]


@dataclass(frozen=True, kw_only=True, slots=True)
class PhraseTable:
    """Hashes of phrases, by length.

    Attributes:
        lengths: int32[lengths]: each length that occurs, in characters, ascending.
        keys: uint64[phrases], ascending.
        rows: uint16[phrases]: the row of each key.
    """

    lengths: NDArray[np.int32]
    keys: Words
    rows: NDArray[np.uint16]

    @classmethod
    def of(cls, phrases: Mapping[int, str]) -> PhraseTable:
        """A table of phrases by row, in small letters."""
        import numpy as np

        hashes = (_hash(phrase) for phrase in phrases.values())
        keys = np.fromiter(hashes, np.uint64, len(phrases))
        order = np.argsort(keys, kind="stable")
        return cls(
            lengths=np.array(sorted({len(phrase) for phrase in phrases.values()}), np.int32),
            keys=keys[order],
            rows=np.fromiter(phrases, np.uint16, len(phrases))[order],
        )

    def candidates(self, spans: Spans) -> list[tuple[int, int]]:
        """Starts and rows of phrases that probably stand in the text; hashes may fall together."""
        import numpy as np

        found: list[tuple[int, int]] = []
        for length in self.lengths.tolist():
            if length > len(spans.text):
                break
            starts, hashes = spans.of_length(length)
            first = np.searchsorted(self.keys, hashes)
            end = np.searchsorted(self.keys, hashes, "right")
            for at in np.flatnonzero(first < end).tolist():
                rows = self.rows[first[at] : end[at]].tolist()
                found += [(int(starts[at]), row) for row in rows]
        return found


def _hash(text: str) -> int:
    import numpy as np

    codes = _codes(text)
    return int(np.sum(codes * _powers(len(codes)), dtype=np.uint64))


def _codes(text: str) -> Words:
    import numpy as np

    encoded = text.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(encoded, "<u4").astype(np.uint64) + np.uint64(1)


def _powers(count: int, base: int = _BASE) -> Words:
    import numpy as np

    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _is_word(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())
