"""``weighed``: the weights of rollouts, by what all processes have tried in a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agentkit.episodes import FailureLabel
from agentkit_training.distributed.ranks import Ranks
from agentkit_training.rollout.samples import Rollout
from agentkit_training.weighting.protocol import Weighting, with_weights


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """What the others must know of a rollout; see ``Judged``."""

    labels: tuple[FailureLabel, ...]
    passed: bool
    fault: str


def weighed(
    rollouts: Sequence[Rollout], weighting: Weighting, ranks: Ranks
) -> tuple[tuple[Rollout, ...], Weighting]:
    """The rollouts of this process with their weights, and the weighting after the step.

    The weighting is told of a step before it weighs it, as SEAL's release has it. It sees the
    rollouts of all processes, so that utilities and mean weight are those of one process that tried
    everything. All processes must call this, those without rollouts as well.

    Args:
        rollouts: Those of this process.
        weighting: As it was before the step, the same everywhere.
        ranks: The processes.
    """
    own = [_Told(labels=one.labels, passed=one.passed, fault=one.fault) for one in rollouts]
    shares = ranks.broadcast(ranks.gather([asdict(one) for one in own]))
    told = [_Told(**one) for share in shares for one in share]
    observed = weighting.observed(told)
    first = sum(map(len, shares[: ranks.rank]))
    weights = observed.weights(told)[first : first + len(rollouts)]
    return with_weights(rollouts, weights), observed
