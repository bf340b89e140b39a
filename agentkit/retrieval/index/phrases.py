"""Finding any of many phrases in a text, by the hashes of all stretches of the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 2**64)
"""Powers of an odd number can be divided by modulo 2**64, so that a stretch hashes the same
wherever it stands."""

_WORD_CODES = bytes([0, *(chr(code) == "_" or chr(code).isalnum() for code in range(128))])
"""By code of a character (see ``_codes``) whether it belongs to an ASCII word."""

_AT_A_TIME = 2_048
"""Places of a text that are looked at together, so that long ones take no more memory."""


class Spans:
    """The stretches of a text that could be a phrase, hashed.

    A phrase is not looked for inside an ASCII word: ``aid`` is not in ``aide``.

    Args:
        text: Without capitals.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def of_lengths(self, lengths: NDArray[np.int32]) -> Iterator[tuple[NDArray[np.int64], Words]]:
        """Starts and hashes of the stretches of so many characters, some thousand at a time."""
        import numpy as np

        starts, may_end = self._borders
        for first in range(0, len(starts), _AT_A_TIME):
            begins = starts[first : first + _AT_A_TIME]
            stops = np.minimum(begins[:, None] + lengths, len(may_end) - 1)
            which = np.nonzero(may_end[stops])
            begins, ends = begins[which[0]], stops[which]
            yield begins, (self._sums[ends] - self._sums[begins]) * self._divisors[begins]

    @cached_property
    def _borders(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where a stretch may start, and before which character it may end: not in an ASCII word.

        The second is bool[len + 2]; the last one is False, for all that lies behind the text.
        """
        import numpy as np

        word = np.concatenate([[False], _in_words(self._codes), [False]])
        return np.flatnonzero(~word[:-2]), np.append(~word[1:], False)

    @cached_property
    def _codes(self) -> Words:
        return _codes(self.text)

    @cached_property
    def _sums(self) -> Words:
        import numpy as np

        return np.append(np.uint64(0), np.cumsum(self._codes * _powers(len(self._codes))))

    @cached_property
    def _divisors(self) -> Words:
        return _powers(len(self.text) + 1, base=_INVERSE)


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

        if not len(self.keys) or not spans.text:
            return []
        found: list[tuple[int, int]] = []
        for starts, hashes in spans.of_lengths(self.lengths):
            first = np.searchsorted(self.keys, hashes)
            end = np.searchsorted(self.keys, hashes, "right")
            for at in np.flatnonzero(first < end).tolist():
                found += [(int(starts[at]), row) for row in self.rows[first[at] : end[at]].tolist()]
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
    """The first ``count`` powers of ``base`` modulo 2**64."""
    if count > _AT_A_TIME:
        return _multiplied(count, base)
    return _remembered(base)[:count]


@lru_cache(maxsize=2)
def _remembered(base: int) -> Words:
    return _multiplied(_AT_A_TIME, base)


def _multiplied(count: int, base: int) -> Words:
    import numpy as np

    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _in_words(codes: Words) -> NDArray[np.bool_]:
    """bool[characters]: whether each is one of an ASCII word: a letter, a digit or ``_``."""
    import numpy as np

    word = np.frombuffer(_WORD_CODES, bool)
    return word[np.where(codes < len(word), codes, 0)]
