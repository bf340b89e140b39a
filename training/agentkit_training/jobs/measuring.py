"""Measuring a policy on held-out tasks, as a line of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentkit._waiting import wait_for
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit_training.rollout.collecting import RolloutModel, collect
from agentkit_training.rollout.samples import Rollout
from agentkit_training.runs.records import StepRecord


def measured(
    model: RolloutModel,
    benchmark: Benchmark,
    *,
    step: int,
    phase: str = "evaluate",
    library: Library | None = None,
    settings: EvaluationSettings | None = None,
) -> StepRecord:
    """How many tasks the policy passes, greedily answered, through the evaluation's own door.

    Args:
        model: The policy, or what tries tasks in its place.
        benchmark: The tasks.
        step: Training steps before it.
        phase: Its name in the log.
        library: What the tools are called and described as.
        settings: How to ask.
    """
    found = wait_for(
        collect(model, benchmark, library=library, attempts=1, temperature=0, settings=settings)
    )
    return StepRecord(step=step, phase=phase, figures=_figures(found), labels=_labels(found))


def _figures(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Figures of an evaluation.

    Tasks that are broken do not count. One that the policy could not answer does, as not solved: a
    policy that fills its window would else be measured on what it leaves over.
    """
    judged = [one for one in rollouts if not _is_broken(one)]
    solved = [one for one in rollouts if one.passed and not one.fault]
    calls = sum(
        len(turn.message.tool_calls)
        for one in solved
        for episode in one.episodes
        for turn in episode.turns
    )
    figures = {
        "accuracy": len(solved) / max(1, len(judged)),
        "tasks": float(len(rollouts)),
        "faults": float(sum(bool(one.fault) for one in rollouts)),
    }
    return figures | ({"calls_per_solved": calls / len(solved)} if solved else {})


def _is_broken(rollout: Rollout) -> bool:
    """Whether the reference or the verifier is at fault."""
    verdicts = [one.verdict for one in rollout.episodes if one.verdict is not None]
    return any(verdict.fault is not None for verdict in verdicts)


def _labels(rollouts: Sequence[Rollout]) -> dict[str, int]:
    return dict(Counter(label for one in rollouts for label in one.labels))
