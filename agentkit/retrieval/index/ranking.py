"""The highest of many scores, exactly and always in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agentkit.retrieval.index.channel import Mask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 128


def best_rows(
    scores: NDArray[np.float32], count: int, mask: Mask | None, name: Callable[[int], str]
) -> list[int]:
    """Rows of the ``count`` highest scores above 0, best first; ties go by ``name(row)``.

    The maxima of blocks give a bound that at least ``count`` scores reach; only those above it
    are looked at further.
    """
    import numpy as np

    if count < 1 or not len(scores):
        return []
    if mask is not None:
        scores = np.where(mask, scores, np.float32(0))
    candidates = np.flatnonzero(scores >= _bound(scores, count))
    candidates = candidates[scores[candidates] > 0]
    if len(candidates) > count:
        lowest = np.partition(scores[candidates], -count)[-count]
        candidates = candidates[scores[candidates] >= lowest]
    ordered = sorted(candidates.tolist(), key=lambda row: (-scores[row], name(row)))
    return ordered[:count]


def _bound(scores: NDArray[np.float32], count: int) -> float:
    """A score that at least ``count`` rows reach, or 0."""
    import numpy as np

    blocks = len(scores) // _BLOCK
    if blocks < count:
        return 0.0
    highest = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
    return float(np.partition(highest, -count)[-count])
