"""``NameTable``: the names of a segment, found by hash."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

from agentkit.retrieval.index.channel import Mask
from agentkit.retrieval.index.packing import pack_arrays, unpack_arrays
from agentkit.retrieval.index.phrases import PhraseTable, Spans
from agentkit.retrieval.index.postings import key_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

IDENTIFIER = re.compile(r"[A-Za-z0-9_]+(?:[.\-/:]+[A-Za-z0-9_]+)*")
"""What can be told from the words around it: a run of letters, digits and inner signs."""


@dataclass(frozen=True, kw_only=True)
class NameTable:
    """Names by row, and rows by name in any capitals.

    Attributes:
        names: The name of each row.
        keys: uint64[rows], ascending: hashes of the names without capitals.
        rows: uint16[rows]: the row of each key.
        phrases: Those names that are no identifiers, such as ``first aid``.
    """

    names: tuple[str, ...]
    keys: NDArray[np.uint64]
    rows: NDArray[np.uint16]
    phrases: PhraseTable

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, names: Sequence[str]) -> NameTable:
        """The table of some names."""
        import numpy as np

        keys = np.fromiter((key_of(name.casefold()) for name in names), np.uint64, len(names))
        return cls._sorted(tuple(names), keys)

    @classmethod
    def merged(cls, parts: Sequence[tuple[NameTable, Mask | None]]) -> NameTable:
        """The tables of several segments as one, without the rows that are not kept."""
        import numpy as np

        names: list[str] = []
        keys = []
        for part, mask in parts:
            by_row = np.empty(len(part), np.uint64)
            by_row[part.rows] = part.keys
            keys.append(by_row if mask is None else by_row[mask])
            names += part.names if mask is None else compress(part.names, mask.tolist())
        return cls._sorted(tuple(names), np.concatenate(keys))

    @classmethod
    def _sorted(cls, names: tuple[str, ...], keys: NDArray[np.uint64]) -> NameTable:
        import numpy as np

        order = np.argsort(keys, kind="stable")
        phrases = {
            row: name.casefold()
            for row, name in enumerate(names)
            if not (IDENTIFIER.fullmatch(name) or name.isalnum())
        }
        return cls(
            names=names,
            keys=keys[order],
            rows=order.astype(np.uint16),
            phrases=PhraseTable.of(phrases),
        )

    def to_bytes(self) -> bytes:
        """All but the names themselves, which the definitions hold."""
        return pack_arrays(
            {
                "keys": self.keys,
                "rows": self.rows,
                "phrase_lengths": self.phrases.lengths,
                "phrase_keys": self.phrases.keys,
                "phrase_rows": self.phrases.rows,
            }
        )

    @classmethod
    def from_bytes(cls, blob: bytes, names: Sequence[str]) -> NameTable:
        """The inverse of ``to_bytes``."""
        arrays = unpack_arrays(blob)
        return cls(
            names=tuple(names),
            keys=arrays["keys"],
            rows=arrays["rows"],
            phrases=PhraseTable(
                lengths=arrays["phrase_lengths"],
                keys=arrays["phrase_keys"],
                rows=arrays["phrase_rows"],
            ),
        )

    @cached_property
    def ranks(self) -> NDArray[np.uint16]:
        """The place of each row in the order of names; worked out when it is first asked for."""
        import numpy as np

        ranks = np.empty(len(self), np.uint16)
        ranks[sorted(range(len(self)), key=self.names.__getitem__)] = np.arange(len(self))
        return ranks

    def row(self, name: str) -> int | None:
        """The row of a name, written exactly so."""
        return next((row for row in self.rows_of(name.casefold()) if self.names[row] == name), None)

    def rows_of(self, folded: str) -> list[int]:
        """Rows of the names that equal ``folded`` without capitals."""
        import numpy as np

        key = np.uint64(key_of(folded))
        first, end = np.searchsorted(self.keys, key), np.searchsorted(self.keys, key, "right")
        rows = self.rows[first:end].tolist()
        return [row for row in rows if self.names[row].casefold() == folded]

    def phrases_in(self, spans: Spans) -> list[tuple[int, int]]:
        """Where phrases stand in a text: the place of its first character, and the row."""
        found = self.phrases.candidates(spans)
        return [
            (start, row)
            for start, row in found
            if spans.text.startswith(self.names[row].casefold(), start)
        ]
