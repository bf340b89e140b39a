"""How difficult each task is for the policy as it is now (ToolACE-R, section 3.2, Eq. 5).

Where the paper is silent:

* An attempt is what the policy says first. Where tools run, later turns are not asked for.
* Where a question allows several values, the reference is the right answer that is nearest to the
  attempt, so that no attempt that is right makes the question difficult.
* An attempt that could not be made (the prompt leaves no room) is no attempt; a task without any
  is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import fmean

from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.evaluation.task import LeftOut
from agentkit.library import Library
from agentkit.messages import ToolCall
from agentkit.metrics import difficulty
from agentkit.tools.definition import ToolDefinition
from agentkit_training.gold import GoldAnswer, nearest_calls
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.rollout.samples import Rollout


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskDifficulty:
    """How difficult one task is.

    Attributes:
        task_id: The task.
        difficulty: D, from 0 (each attempt is right) to 1 (none has anything of the answer).
        attempts: The calls of each attempt, as they were written.
        shortfalls: One minus the overlap of each attempt with the reference; D is their mean.
        names: The catalogue's names of tools that are offered under another one, by that name.
    """

    task_id: str
    difficulty: float
    attempts: tuple[tuple[ToolCall, ...], ...]
    shortfalls: tuple[float, ...]
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difficulties:
    """How difficult tasks are.

    Attributes:
        tasks: In the order of the benchmark.
        left_out: Tasks that no attempt could be made at, and why.
    """

    tasks: tuple[TaskDifficulty, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def __add__(self, other: Difficulties) -> Difficulties:
        return Difficulties(tasks=self.tasks + other.tasks, left_out=self.left_out + other.left_out)

    def histogram(self, bins: int = 10) -> tuple[int, ...]:
        """How many tasks there are in each of ``bins`` equal ranges of D; 1 is in the last.

        Example:
            >>> def one(d):
            ...     return TaskDifficulty(task_id="", difficulty=d, attempts=(), shortfalls=())
            >>> Difficulties(tasks=(one(0.0), one(0.3), one(1.0))).histogram(4)
            (1, 1, 0, 1)
        """
        counts = [0] * bins
        for one in self.tasks:
            counts[min(int(one.difficulty * bins), bins - 1)] += 1
        return tuple(counts)


async def estimate_difficulty(
    model: PolicyModel,
    benchmark: Benchmark,
    answers: Mapping[str, GoldAnswer],
    *,
    library: Library | None = None,
    attempts: int = 8,
    temperature: float = 1.0,
    seed: int = 0,
    settings: EvaluationSettings | None = None,
) -> Difficulties:
    """Estimate D for each task that has a gold answer.

    Args:
        model: The policy.
        benchmark: The tasks; those of self-refine samples as well, see ``refine_samples``.
        answers: Their gold answers; tasks without one are passed over.
        library: What the tools are called and described as, see ``collect``.
        attempts: Samples of each task (k; 8 in the paper, where 1 costs 10% of the difficult
            samples that are worth learning from).
        temperature: Of sampling.
        seed: Of the first attempt.
        settings: How to ask.
    """
    tasks = tuple(task for task in benchmark.tasks if task.task_id in answers)
    if not tasks:
        return Difficulties()
    rollouts = await collect(
        model,
        replace(benchmark, tasks=tasks),
        library=library,
        attempts=attempts,
        temperature=temperature,
        seed=seed,
        settings=replace(settings or EvaluationSettings(), max_steps=1),
    )
    return difficulties(rollouts, answers, benchmark.definitions)


def difficulties(
    rollouts: Iterable[Rollout],
    answers: Mapping[str, GoldAnswer],
    definitions: Iterable[ToolDefinition],
) -> Difficulties:
    """D of each task, from attempts that were made already.

    Args:
        rollouts: The attempts at a task together, as ``collect`` gives them.
        answers: Gold answers by task; a rollout of a task without one is passed over.
        definitions: The benchmark's catalogue.
    """
    known = {one.name: one for one in definitions}
    tasks: list[TaskDifficulty] = []
    left_out: list[LeftOut] = []
    for task_id, group in groupby(rollouts, key=lambda one: one.task_id):
        if task_id not in answers:
            continue
        made = list(group)
        sound = [one for one in made if not one.fault and one.episodes]
        if sound:
            tasks.append(_estimate(sound, answers[task_id], known))
        else:
            reason = f"could not be asked: {made[0].fault}"
            left_out.append(LeftOut(where=task_id, reason=reason))
    return Difficulties(tasks=tuple(tasks), left_out=tuple(left_out))


def first_calls(rollout: Rollout) -> tuple[ToolCall, ...]:
    """What a rollout called in its first turn."""
    turns = rollout.episodes[0].turns
    return turns[0].message.tool_calls if turns else ()


def catalogued(calls: Iterable[ToolCall], names: Mapping[str, str]) -> list[ToolCall]:
    """Calls in the names of the catalogue.

    Args:
        calls: As they were written.
        names: The catalogue's names of tools that are offered under another one.
    """
    return [replace(call, name=names.get(call.name, call.name)) for call in calls]


def _estimate(
    rollouts: Sequence[Rollout], gold: GoldAnswer, known: Mapping[str, ToolDefinition]
) -> TaskDifficulty:
    names = rollouts[0].episodes[0].library_names
    shortfalls = []
    for one in rollouts:
        calls = catalogued(first_calls(one), names)
        reference = nearest_calls(gold, calls, known)
        shortfalls.append(difficulty([calls], reference, known))
    return TaskDifficulty(
        task_id=rollouts[0].task_id,
        difficulty=min(1.0, max(0.0, fmean(shortfalls))),
        attempts=tuple(first_calls(one) for one in rollouts),
        shortfalls=tuple(shortfalls),
        names=dict(names),
    )
