"""How much each rollout's advantage counts, by what its turns are labelled with (SEAL, 3.4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from types import MappingProxyType
from typing import Generic, Protocol, Self, TypeVar, get_args

from agentkit.diagnosis.labels import NOT_FAILURES, OUTSIDE
from agentkit.episodes import FailureLabel
from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit_training.errors import CheckpointError
from agentkit_training.rollout.samples import Rollout


class Judged(Protocol):
    """What a weight depends on: a ``Rollout``, or what another process tells of one."""

    @property
    def labels(self) -> Sequence[FailureLabel]:
        """The failure labels of its turns, in order."""
        ...

    @property
    def passed(self) -> bool:
        """Whether all that was judged passed."""
        ...

    @property
    def fault(self) -> str:
        """Why it must not be trained on; empty for any other."""
        ...


class Weighting(Protocol):
    """Weighs rollouts. Immutable: what it learns from a round is a new weighting."""

    def weights(self, rollouts: Sequence[Judged]) -> Sequence[float]:
        """A positive weight for each rollout; 1 for one with a fault."""
        ...

    def observed(self, rollouts: Sequence[Judged]) -> Self:
        """The weighting after a round of rollouts (SEAL, Eq. 14)."""
        ...

    def state(self) -> JsonObject:
        """What it has learned, for a checkpoint."""
        ...

    def restored(self, state: JsonObject) -> Self:
        """The weighting with what ``state`` gave.

        Raises:
            CheckpointError: It is no such state.
        """
        ...


def weighted_rollouts(rollouts: Sequence[Rollout], weighting: Weighting) -> tuple[Rollout, ...]:
    """The rollouts with their weights: w of A' = w A, with A the group's advantage (SEAL, Eq. 12).

    Weights are positive, so no advantage changes its sign. As in the released code, a weighting
    that changes is told of a round before it weighs it:
    ``weighted_rollouts(rollouts, weighting.observed(rollouts))``.
    """
    return with_weights(rollouts, weighting.weights(rollouts))


def with_weights(rollouts: Sequence[Rollout], weights: Sequence[float]) -> tuple[Rollout, ...]:
    """The rollouts with a weight each; those with a fault as they are."""
    return tuple(
        rollout if rollout.fault else replace(rollout, weight=weight)
        for rollout, weight in zip(rollouts, weights, strict=True)
    )


def mean_weight(rollouts: Iterable[Rollout]) -> float:
    """The mean weight of what is trained on: the factor that weighting puts on the learning rate.

    The control for SEAL is the plain loss at a learning rate times this. 1 without rollouts.
    """
    weights = [one.weight for one in rollouts if not one.fault]
    return fmean(weights) if weights else 1.0


PAPER_UTILITIES: Mapping[FailureLabel, float] = MappingProxyType(
    {
        "spurious_tool_call": 2.0,
        "invalid_tool_call": 2.0,
        "argument_mismatch": 2.0,
        "correct_abstention": 1.8,
        "missing_tool_call": 1.5,
        "state_mismatch": 1.0,
        "recovery_failure": 1.0,
        "response_mismatch": 0.9,
        "pass": 1.0,
        "unjudged": 1.0,
    }
)
"""The utilities u(l) of the paper under our labels; see the module's text."""

CLIP = (0.5, 2.0)
"""Least and largest weight: those of the released configuration; the paper's text has lost them."""


def label_profile(labels: Iterable[FailureLabel]) -> dict[FailureLabel, float]:
    """p(l): the share of each label among the turns of one rollout (SEAL, Eq. 10).

    Labels that say nothing about the policy are left out of the count. Empty without any other.

    Example:
        >>> label_profile(["pass", "argument_mismatch", "pass", "gold_error", "pass"])
        {'pass': 0.75, 'argument_mismatch': 0.25}
    """
    counts = Counter(label for label in labels if label not in OUTSIDE)
    total = counts.total()
    return {label: count / total for label, count in counts.most_common()}


def diagnostic_weight(
    labels: Iterable[FailureLabel],
    utilities: Mapping[FailureLabel, float] = PAPER_UTILITIES,
    clip: tuple[float, float] = CLIP,
) -> float:
    """W = clip(sum over l of p(l) u(l), w_min, w_max): the expected utility (SEAL, Eq. 11).

    Args:
        labels: The labels of a rollout's turns.
        utilities: u(l); 1 for a label that it lacks.
        clip: w_min and w_max.

    Returns:
        The weight; 1 where no label says anything, so that the advantage stays as it is.

    Example:
        >>> diagnostic_weight(["spurious_tool_call", "pass"])
        1.5
    """
    profile = label_profile(labels)
    if not profile:
        return 1.0
    expected = math.fsum(share * utilities.get(label, 1.0) for label, share in profile.items())
    return min(max(expected, clip[0]), clip[1])


def rollout_weights(
    rollouts: Iterable[Judged],
    utilities: Mapping[FailureLabel, float],
    clip: tuple[float, float],
) -> tuple[float, ...]:
    """The diagnostic weight of each rollout; 1 for one with a fault, which is not trained on."""
    return tuple(
        1.0 if one.fault else diagnostic_weight(one.labels, utilities, clip) for one in rollouts
    )


def check_clip(clip: tuple[float, float]) -> None:
    """Refuse bounds that could turn an advantage around.

    Raises:
        UsageError: They are not two positive numbers, the smaller one first.
    """
    low, high = clip
    if not 0 < low <= high < math.inf:
        raise UsageError(
            f"weights are clipped to {low:g} and {high:g}; give two positive numbers, the smaller "
            f"one first, such as {CLIP[0]:g} and {CLIP[1]:g}: a weight of 0 or less would not keep "
            "the sign of an advantage"
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
    utilities: Mapping[FailureLabel, float] = field(default_factory=dict, repr=False)

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
