"""``CardTokens``: what the one-line card of each tool costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit.retrieval.cards import card
from agentkit.retrieval.index.channel import Mask
from agentkit.retrieval.index.packing import pack_arrays, unpack_arrays
from agentkit.retrieval.index.tool_index import ToolIndex
from agentkit.retrieval.tokens import TokenCounter, counted, estimate_tokens
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 3
"""Raise it when ``card`` or ``estimate_tokens`` gives something else than before."""

_MOST = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class CardTokens:
    """The channel behind the token counts of stage reports.

    Attributes:
        count_tokens: Counts the tokens of a text.
    """

    count_tokens: TokenCounter = estimate_tokens

    @property
    def fingerprint(self) -> str:
        """A counter of one's own has no name, and its counts are not stored."""
        return f"card_tokens/{_VERSION}" if self.count_tokens is estimate_tokens else ""

    def total(self, index: ToolIndex, mask: Mask | None = None) -> int:
        """Tokens of the cards of all tools, or of those in a ``mask`` over rows."""
        total = 0
        for part, tokens in index.data(self):
            kept = part.alive if mask is None else mask[part.rows]
            total += int(tokens.sum() if kept is None else tokens[kept].sum())
        return total

    def build(self, definitions: Sequence[ToolDefinition]) -> NDArray[np.int32]:
        """Tokens of each card with the line break after it."""
        import numpy as np

        texts = (card(definition) + "\n" for definition in definitions)
        tokens = (min(counted(text, self.count_tokens), _MOST) for text in texts)
        return np.fromiter(tokens, np.int32, len(definitions))

    def merge(
        self, parts: Sequence[tuple[NDArray[np.int32], Mask | None]], sizes: Sequence[int]
    ) -> NDArray[np.int32]:
        """The counts one behind the other."""
        import numpy as np

        return np.concatenate([data if mask is None else data[mask] for data, mask in parts])

    def to_bytes(self, data: NDArray[np.int32]) -> bytes:
        """The one array."""
        return pack_arrays({"tokens": data})

    def from_bytes(self, blob: bytes) -> NDArray[np.int32]:
        """The inverse of ``to_bytes``."""
        return unpack_arrays(blob)["tokens"]
