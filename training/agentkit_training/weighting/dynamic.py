"""``DynamicWeighting``: utilities that follow what the policy fails at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, get_args

from agentkit.diagnosis.labels import NOT_FAILURES, OUTSIDE
from agentkit.episodes import FailureLabel
from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit_training.errors import CheckpointError
from agentkit_training.weighting.protocol import Judged
from agentkit_training.weighting.utilities import (
    CLIP,
    PAPER_UTILITIES,
    check_clip,
    rollout_weights,
)

_LABELS = frozenset(get_args(FailureLabel))
_STEADY = (NOT_FAILURES | OUTSIDE) - {"correct_abstention"}


@dataclass(frozen=True, kw_only=True)
class DynamicWeighting:
    """Weighs by utilities that rise for failures that are frequent and do not get better.

    The paper fixes the utilities; the configuration that its authors released (``exp/SEAL.yaml`` of
    yihaohu0118/SEAL) lets them follow the policy. After each round, for every label l,

        target(l) = clip(base(l) (1 + alpha * prevalence * stagnation * confidence))
        u(l) <- (1 - beta) u(l) + beta target(l),

    where prevalence is the share of l among the round's turns, stagnation the share of its turns
    whose rollout did not pass, and confidence min(1, turns / 32). A label that does not come up
    goes back to its base; so the utilities of passing and unjudged turns never move.

    What is ours: a round is what ``observed`` is given, where the release counts since the start of
    an epoch, so that the first steps of each hardly count; passing stands for a reward of 1. As in
    the release, no target is below its base, so weights are never below those of the base, and the
    mean with them: ``MeanNormalised`` takes that out. A base at the upper bound, as that of
    ``spurious_tool_call``, can not rise.

    Several processes come to the same utilities when each observes what all of them tried, as
    ``coevolve`` has them do.

    Attributes:
        base: The utilities to start from and to come back to.
        beta: How far a round moves them.
        alpha: The most that prevalence can add, relative to the base.
        confident_turns: Turns with a label from which on its share is believed.
        clip: Least and largest weight, and target.
        utilities: The utilities now.

    Raises:
        UsageError: The bounds are not positive, or beta is not from 0 to 1.
    """

    base: Mapping[FailureLabel, float] = field(default_factory=lambda: PAPER_UTILITIES)
    beta: float = 0.25
    alpha: float = 1.0
    confident_turns: int = 32
    clip: tuple[float, float] = CLIP
    utilities: Mapping[FailureLabel, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_clip(self.clip)
        if not 0 <= self.beta <= 1 or self.alpha < 0 or self.confident_turns < 1:
            raise UsageError(
                f"beta is {self.beta:g}, alpha {self.alpha:g} and confident_turns "
                f"{self.confident_turns}; give beta from 0 to 1, alpha of 0 or more, and at least "
                "one turn"
            )
        object.__setattr__(self, "utilities", {**self.base, **self.utilities})

    def weights(self, rollouts: Sequence[Judged]) -> tuple[float, ...]:
        """The expected utility of each rollout's labels, clipped; 1 for one with a fault."""
        return rollout_weights(rollouts, self.utilities, self.clip)

    def observed(self, rollouts: Sequence[Judged]) -> Self:
        """The weighting after one more round; the same where no turn says anything."""
        turns: Counter[FailureLabel] = Counter()
        failed: Counter[FailureLabel] = Counter()
        for rollout in rollouts:
            labels = [] if rollout.fault else [one for one in rollout.labels if one not in OUTSIDE]
            turns.update(labels)
            failed.update(() if rollout.passed else labels)
        if not turns:
            return self
        return replace(
            self,
            utilities={
                label: (1 - self.beta) * now + self.beta * self._target(label, turns, failed)
                for label, now in self.utilities.items()
            },
        )

    def _target(
        self, label: FailureLabel, turns: Counter[FailureLabel], failed: Counter[FailureLabel]
    ) -> float:
        base, count = self.base.get(label, 1.0), turns[label]
        pressure = 0.0
        if count and label not in _STEADY:
            confidence = min(1.0, count / self.confident_turns)
            pressure = count / turns.total() * failed[label] / count * confidence
        return min(max(base * (1 + self.alpha * pressure), self.clip[0]), self.clip[1])

    def state(self) -> JsonObject:
        """The utilities now."""
        return {"utilities": dict(self.utilities)}

    def restored(self, state: JsonObject) -> Self:
        """The weighting with the utilities of a state.

        Raises:
            CheckpointError: It is no such state.
        """
        found = state.get("utilities")
        if not isinstance(found, Mapping) or not all(map(_is_utility, found.items())):
            raise CheckpointError(
                f"the checkpoint has no utilities of labels but {str(dict(state))[:200]}; go on "
                "with the weighting that the run was begun with"
            )
        return replace(self, utilities={label: float(value) for label, value in found.items()})


def _is_utility(item: tuple[object, object]) -> bool:
    label, value = item
    return label in _LABELS and isinstance(value, int | float) and value > 0
