"""Measuring a policy on held-out tasks, as a line of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce

from agentkit._waiting import wait_for
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit_training.distributed.ranks import ALONE, Ranks
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
    ranks: Ranks = ALONE,
) -> StepRecord:
    """How many tasks the policy passes, greedily answered, through the evaluation's own door.

    Several processes share the tasks out, and come to one record. One of them could do all, but
    the others would wait for it as many times longer, and in vain.

    Args:
        model: The policy, or what tries tasks in its place.
        benchmark: The tasks.
        step: Training steps before it.
        phase: Its name in the log.
        library: What the tools are called and described as.
        settings: How to ask.
        ranks: The processes that hold the policy; all of them must call this.
    """
    own = replace(benchmark, tasks=benchmark.tasks[ranks.rank :: ranks.world])
    found: Sequence[Rollout] = ()
    if own.tasks:
        asked = collect(model, own, library=library, attempts=1, temperature=0, settings=settings)
        found = wait_for(asked)
    told = ranks.broadcast(ranks.gather(asdict(_Tally.of(found))))
    tally = reduce(_Tally.plus, (_Tally(**one) for one in told))
    return StepRecord(
        step=step, phase=phase, figures=tally.figures(), labels=tally.labels, notes=tally.notes()
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tally:
    """What one process counted, or several together.

    Tasks that are broken are not judged. One that the policy could not answer is, as not solved: a
    policy that fills its window would else be measured on what it leaves over.
    """

    tasks: int
    judged: int
    solved: int
    faults: int
    fault: str
    calls: int
    labels: dict[str, int]

    @classmethod
    def of(cls, rollouts: Sequence[Rollout]) -> _Tally:
        """The counts of rollouts."""
        solved = [one for one in rollouts if one.passed and not one.fault]
        return cls(
            tasks=len(rollouts),
            judged=sum(not _is_broken(one) for one in rollouts),
            solved=len(solved),
            faults=sum(bool(one.fault) for one in rollouts),
            fault=next((one.fault for one in rollouts if one.fault), ""),
            calls=sum(
                len(turn.message.tool_calls)
                for one in solved
                for episode in one.episodes
                for turn in episode.turns
            ),
            labels=dict(Counter(label for one in rollouts for label in one.labels)),
        )

    def plus(self, other: _Tally) -> _Tally:
        """The counts of both."""
        return _Tally(
            tasks=self.tasks + other.tasks,
            judged=self.judged + other.judged,
            solved=self.solved + other.solved,
            faults=self.faults + other.faults,
            fault=self.fault or other.fault,
            calls=self.calls + other.calls,
            labels=dict(Counter(self.labels) + Counter(other.labels)),
        )

    def notes(self) -> tuple[str, ...]:
        """What a reader of the share must know: tasks that say nothing of what the policy knows."""
        if not self.faults:
            return ()
        told = f"{self.faults} of {self.tasks} tasks could not be asked, answered or judged"
        return (f"{told}; the first: {self.fault}",)

    def figures(self) -> dict[str, float]:
        """The figures of an evaluation."""
        figures = {
            "accuracy": self.solved / max(1, self.judged),
            "tasks": float(self.tasks),
            "faults": float(self.faults),
        }
        return figures | ({"calls_per_solved": self.calls / self.solved} if self.solved else {})


def _is_broken(rollout: Rollout) -> bool:
    """Whether the reference or the verifier is at fault."""
    verdicts = [one.verdict for one in rollout.episodes if one.verdict is not None]
    return any(verdict.fault is not None for verdict in verdicts)
