"""``FixedWeighting``: the paper's utilities, the same throughout training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from agentkit.episodes import FailureLabel
from agentkit.messages import JsonObject
from agentkit_training.errors import CheckpointError
from agentkit_training.weighting.protocol import Judged
from agentkit_training.weighting.utilities import (
    CLIP,
    PAPER_UTILITIES,
    check_clip,
    rollout_weights,
)


@dataclass(frozen=True, kw_only=True)
class FixedWeighting:
    """Weighs by fixed utilities (SEAL, Eq. 11: "fixed across all backbones and training runs").

    With the paper's utilities the mean weight is well above 1 where most rollouts fail, which
    raises the learning rate unseen; ``MeanNormalised`` takes that out.

    Attributes:
        utilities: u(l); 1 for a label that it lacks.
        clip: Least and largest weight.

    Raises:
        UsageError: The bounds are not positive.
    """

    utilities: Mapping[FailureLabel, float] = field(default_factory=lambda: PAPER_UTILITIES)
    clip: tuple[float, float] = CLIP

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def weights(self, rollouts: Sequence[Judged]) -> tuple[float, ...]:
        """The expected utility of each rollout's labels, clipped; 1 for one with a fault."""
        return rollout_weights(rollouts, self.utilities, self.clip)

    def observed(self, rollouts: Sequence[Judged]) -> Self:
        """The same."""
        return self

    def state(self) -> JsonObject:
        """Nothing."""
        return {}

    def restored(self, state: JsonObject) -> Self:
        """The same.

        Raises:
            CheckpointError: The state is that of a weighting that changes.
        """
        if state:
            raise CheckpointError(
                f"the checkpoint's weights have a state ({', '.join(map(str, state))}) and fixed "
                "ones have none; go on with the weighting that the run was begun with"
            )
        return self
