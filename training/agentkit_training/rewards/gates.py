"""ToolDNA's gates for those who go by rewards: r = 1 exactly, or r < 1 (Algorithm 1).

In the paper line 8 sends a rollout with r = 1 to the evolution path and line 15 any other to the
feedback path. The training loop does not ask here: what its library learns from is decided on the
verdict of each episode (``agentkit.evolution.proposers.streams``), which holds for every reward
alike. These are for a caller's own loop, or for counting, where a reward is to decide as in the
paper. They look at the reward for the result alone: credit for composites "acts only on the
planner" (CoCoDA, section 3.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agentkit.diagnosis.findings import reported_error
from agentkit.episodes import Episode
from agentkit.episodes.naming import in_library_names
from agentkit.errors import UsageError
from agentkit.evaluation.verifiers.calls import MadeCalls
from agentkit.evolution.proposers.streams import (
    is_imperfect as is_imperfect_episode,
    is_perfect as is_perfect_episode,
)
from agentkit.library import Library, dag as questions
from agentkit.messages import ToolResult
from agentkit_training.rewards.reward import Reward, Worth
from agentkit_training.rollout.samples import Rollout

SAVED_CALLS = "saved_calls"
"""The part of the reward that composites earn; gates leave it out (``result_reward``)."""

_RAN = frozenset({"ok", "deferred"})


def saved_calls(rollout: Rollout, library: Library) -> int:
    """R_comp = the sum of Phi(t) = flat(t) - 1 over the calls t of a rollout (CoCoDA, Eq. 2).

    0 for a rollout of primitives, however many there are. A tool that the library lacks is a
    primitive of the benchmark's own. Other than in the paper, only calls that ran count: one that
    was refused, failed or reported an error has saved nothing, and would be a cheap way to credit.

    Args:
        rollout: What was called.
        library: The version that the rollout's tools came from, for the flat sizes.

    Raises:
        LibraryError: A composite that ran is in a cycle, or a tool below it is missing.
    """
    names = (name for episode in rollout.episodes for name in _ran(episode))
    return sum(questions.saved_calls(library, name) for name in names if name in library)


def saved_calls_reward(library: Library, *, weight: float = 0.2, gated: bool = True) -> Reward:
    """``weight`` times the saved calls: the second half of R = R_res + lambda R_comp (section 3.3).

    Put it beside the reward for the result: ``RewardSum([verdict_reward, ...])``. The gated and
    the ungated credit are both noted, whichever counts.

    * **Gated**, the default, only a rollout that passed is credited. The paper credits every
      rollout, which pays for calling composites instead of solving the task.
    * Primitives earn nothing, so padding with them never pays. Where a block of primitives is
      replaced by one composite and the result is the same, the gain is exactly ``weight`` times its
      saved calls (theorem 3), gated for rollouts that passed.
    * Neither the paper nor the gate keeps a policy from calling composites that the task does not
      need. Verifiers of calls refuse that; those of answers do not: look at ``calls per solved
      task`` there.

    Args:
        library: The version that the rollouts' tools come from; make a new reward when it grows.
        weight: The paper's lambda, reward for each primitive call saved. The paper trains with
            0.2 and finds accuracy the same from 0.1 to 0.3 (appendix K).
        gated: Whether only success is credited.

    Raises:
        UsageError: The weight is negative.
    """
    if weight < 0:
        raise UsageError(f"the weight of saved calls is {weight}; give 0 or more, such as 0.2")
    return _SavedCalls(library=library, weight=weight, gated=gated)


@dataclass(frozen=True, kw_only=True)
class _SavedCalls:
    """The reward, with its settings."""

    library: Library = field(repr=False)
    weight: float
    gated: bool

    def __call__(self, rollout: Rollout) -> Worth:
        ungated = self.weight * saved_calls(rollout, self.library)
        credit = ungated if rollout.passed else 0.0
        return Worth(
            parts={SAVED_CALLS: credit if self.gated else ungated},
            noted={f"{SAVED_CALLS}_gated": credit, f"{SAVED_CALLS}_ungated": ungated},
        )


def _ran(episode: Episode) -> Iterator[str]:
    """The library's names of the tools whose calls ran, one for each call."""
    made = MadeCalls.of(in_library_names(episode))
    for call, result in zip(made.calls, made.results, strict=True):
        if result is not None and _has_run(result):
            yield call.name


def _has_run(result: ToolResult) -> bool:
    return result.status in _RAN and reported_error(result.value) is None


def result_reward(rollout: Rollout) -> float:
    """The reward without the credit for composites: ToolDNA's r, CoCoDA's R_res."""
    return sum(value for name, value in rollout.reward_parts.items() if name != SAVED_CALLS)


def is_perfect(rollout: Rollout) -> bool:
    """Whether a rollout has r = 1, for which ToolDNA takes the evolution path (line 8).

    Its reward for the result is 1 exactly, everything passed, and each judged episode is perfect
    for ``agentkit.evolution`` too: a call that was refused and mended keeps it out. By a reward of
    a user's own a rollout can be perfect only if the best it gives is 1; the training loop goes by
    verdicts, and knows no such bound.
    """
    if rollout.fault or not rollout.passed or result_reward(rollout) != 1:
        return False
    return all(is_perfect_episode(one) for one in rollout.episodes if one.verdict is not None)


def is_imperfect(rollout: Rollout) -> bool:
    """Whether a rollout is judged and not perfect: ToolDNA's feedback path (line 15).

    One that nobody judged, or with a fault, is neither perfect nor imperfect; any other is one of
    the two.
    """
    judged = any(is_perfect_episode(one) or is_imperfect_episode(one) for one in rollout.episodes)
    return judged and not rollout.fault and not is_perfect(rollout)
