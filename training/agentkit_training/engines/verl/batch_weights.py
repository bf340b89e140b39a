"""The factors of a batch's advantages, from what the agent loops noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from agentkit_training.weighting import scaled_to_mean


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchWeights:
    """How a batch is weighed.

    Attributes:
        factors: One for each row, all positive.
        figures: For the metrics of a step.
    """

    factors: tuple[float, ...]
    figures: Mapping[str, float]


def batch_weights(
    notes: Sequence[Mapping[str, Any] | None], *, is_normalised: bool
) -> BatchWeights:
    """The factors of the rows of a batch.

    Args:
        notes: What the loop noted of each row; None for rows that only fill the batch up, which
            are left as they are and do not count.
        is_normalised: Whether the weights are scaled to a mean of 1 over the rows. A rollout of
            several sequences counts once for each.

    Example:
        >>> notes = [{"weight": 1.0, "library_version": 4}, {"weight": 3.0, "library_version": 4}]
        >>> batch_weights([*notes, None], is_normalised=True).factors
        (0.5, 1.5, 1.0)
    """
    sound = [one for one in notes if one is not None]
    plain = [float(one["weight"]) for one in sound]
    scaled = iter(scaled_to_mean(plain) if is_normalised else plain)
    factors = tuple(1.0 if one is None else next(scaled) for one in notes)
    if not sound:
        return BatchWeights(factors=factors, figures={})
    versions = [int(one["library_version"]) for one in sound]
    figures = {
        "agentkit/weight_mean": fmean(plain),
        "agentkit/library_version": float(max(versions)),
        "agentkit/library_versions": float(len(set(versions))),
    }
    return BatchWeights(factors=factors, figures=figures)
