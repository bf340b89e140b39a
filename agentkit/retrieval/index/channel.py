"""``Channel``: one kind of evidence about tools, such as their words or their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Mask: TypeAlias = "NDArray[np.bool_]"
"""bool[rows]: which rows are meant."""

D = TypeVar("D")


class Channel(Protocol[D]):
    """How one kind of evidence is worked out and kept, a segment at a time.

    A channel is hashable; equal channels share their data, so two retrievers with the same
    settings share one index. ``D`` is what it keeps about a segment: any immutable record, best of
    numpy arrays. What it keeps about one tool must depend on that tool alone, not on the rest of
    the catalogue; averages and document frequencies are for query time. Then an index that grew
    tool by tool answers exactly like one that was built at once.
    """

    @property
    def fingerprint(self) -> str:
        """Names the meaning of the data: the kind, its version, and every setting it depends on.

        Data are read back from a store only under the same fingerprint. "" for data that are not
        to be stored.
        """
        ...

    def build(self, definitions: Sequence[ToolDefinition]) -> D:
        """The data about ``definitions``; the place in the list is the row within the segment."""
        ...

    def merge(self, parts: Sequence[tuple[D, Mask | None]], sizes: Sequence[int]) -> D:
        """The data of several segments, one behind the other.

        Args:
            parts: The data of each, and which of its rows are kept (None: all).
            sizes: How many rows are kept of each.

        Returns:
            What ``build`` would give for the definitions that are kept, in order.
        """
        ...

    def to_bytes(self, data: D) -> bytes:
        """The data as bytes, see ``packing.pack_arrays``."""
        ...

    def from_bytes(self, blob: bytes) -> D:
        """The inverse of ``to_bytes``; ``blob`` is known to be undamaged."""
        ...

    def __hash__(self) -> int:
        """Equal channels have equal hashes."""
        ...
