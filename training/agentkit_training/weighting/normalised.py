"""``MeanNormalised``: weights whose mean is 1, so that they only share out the gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit_training.weighting.protocol import Judged, Weighting
from agentkit_training.weighting.utilities import CLIP, check_clip

W = TypeVar("W", bound=Weighting)

_HALVINGS = 200


@dataclass(frozen=True, kw_only=True)
class MeanNormalised(Generic[W]):
    """The weights of another weighting, scaled so that their mean over the batch is 1.

    SEAL does not do that. Its mean weight is then a factor on the learning rate, 1.5 to 1.7 with
    the paper's table while most rollouts fail, and a gain may come from that alone. Here the batch
    keeps its scale, and only the share of each rollout changes.

    Attributes:
        inner: Gives the weights.
        clip: Least and largest weight after scaling; 1 lies between them.

    Raises:
        UsageError: The bounds are not positive, or 1 is not between them.
    """

    inner: W
    clip: tuple[float, float] = CLIP

    def __post_init__(self) -> None:
        check_clip(self.clip)
        if not self.clip[0] <= 1 <= self.clip[1]:
            raise UsageError(
                f"weights from {self.clip[0]:g} to {self.clip[1]:g} can not have a mean of 1; give "
                "bounds with 1 between them"
            )

    def weights(self, rollouts: Sequence[Judged]) -> tuple[float, ...]:
        """The scaled weights; those with a fault are 1 and do not count in the mean."""
        plain = self.inner.weights(rollouts)
        sound = [weight for weight, one in zip(plain, rollouts, strict=True) if not one.fault]
        scaled = iter(scaled_to_mean(sound, self.clip))
        return tuple(1.0 if one.fault else next(scaled) for one in rollouts)

    def observed(self, rollouts: Sequence[Judged]) -> Self:
        """The weighting after a round."""
        return replace(self, inner=self.inner.observed(rollouts))

    def state(self) -> JsonObject:
        """That of the inner weighting."""
        return self.inner.state()

    def restored(self, state: JsonObject) -> Self:
        """The weighting with the state of the inner one.

        Raises:
            CheckpointError: It is no such state.
        """
        return replace(self, inner=self.inner.restored(state))


def scaled_to_mean(weights: Sequence[float], clip: tuple[float, float] = CLIP) -> tuple[float, ...]:
    """clip(c w) with the one c for which the mean is 1.

    Clipping after scaling moves the mean, and scaling after clipping leaves the bounds; so c is
    found for both at once. The mean grows with c from the lower bound to the upper one, so that
    there is one where 1 is between them.

    Args:
        weights: Positive numbers.
        clip: Least and largest of what comes out.

    Example:
        >>> scaled_to_mean([1.0, 3.0])
        (0.5, 1.5)
        >>> [round(one, 3) for one in scaled_to_mean([1.0, 1.0, 1.0, 9.0])]
        [0.667, 0.667, 0.667, 2.0]
    """
    if not weights:
        return ()
    low, high = clip[0] / max(weights), clip[1] / min(weights)
    factor = len(weights) / math.fsum(weights)
    for _ in range(_HALVINGS):
        scaled = _clipped(weights, factor, clip)
        excess = math.fsum(scaled) - len(weights)
        if excess == 0 or not low < high:
            break
        low, high = (low, factor) if excess > 0 else (factor, high)
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        factor = middle
    return _clipped(weights, factor, clip)


def _clipped(
    weights: Sequence[float], factor: float, clip: tuple[float, float]
) -> tuple[float, ...]:
    return tuple(min(max(factor * one, clip[0]), clip[1]) for one in weights)
