"""The highest of many scores, exactly and always in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.retrieval.index.channel import Mask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LARGEST_BLOCK = 128
_BLOCKS = 4
"""So many blocks for each row that is asked for, where there are enough rows."""


def best_rows(
    scores: NDArray[np.float32], count: int, mask: Mask | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of the highest scores above 0.

    The maxima of blocks give a bound that at least ``count`` scores reach; only those above it
    are looked at further.

    Returns:
        The rows that are among the ``count`` best whatever decides between equals, and those that
        share the lowest score that gets in: some of these complete the ``count``.
    """
    import numpy as np

    if count < 1 or not len(scores):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if mask is not None:
        scores = np.where(mask, scores, np.float32(0))
    bound = _bound(scores, count)
    rows = np.flatnonzero(scores >= bound if bound > 0 else scores > 0)
    if len(rows) <= count:
        return rows, rows[:0]
    found = scores[rows]
    lowest = np.partition(found, -count)[-count]
    return rows[found > lowest], rows[found == lowest]


def _bound(scores: NDArray[np.float32], count: int) -> float:
    """A score that at least ``count`` rows reach, or 0."""
    import numpy as np

    size = min(_LARGEST_BLOCK, len(scores) // (_BLOCKS * count))
    if size < 2:
        return 0.0
    blocks = len(scores) // size  # of rows that lie `blocks` apart: columns are compared fastest
    highest = scores[: blocks * size].reshape(size, blocks).max(axis=0)
    return float(np.partition(highest, -count)[-count])
