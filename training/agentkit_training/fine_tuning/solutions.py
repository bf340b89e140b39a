"""``Solutions``: what each task would be taught with, known before any policy is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agentkit.episodes import Episode
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.evaluation.task import LeftOut
from agentkit_training.fine_tuning.prompting import Prompting
from agentkit_training.gold import GoldAnswer, gold_answers
from agentkit_training.tasks.loading import TaskSpec
from agentkit_training.tasks.trajectories import GoldTrajectories, gold_trajectories

_IN_TEMPLATE = "trajectories of several turns are taught with tools_in: prompt alone"


@dataclass(frozen=True, kw_only=True, slots=True)
class Solutions:
    """How tasks are solved, as far as anybody knows.

    Attributes:
        answers: By the id of the task, where one answer is what is taught.
        trajectories: By the id of the task, where it takes several turns.
        left_out: Tasks that nothing is taught of, and why.
    """

    answers: Mapping[str, GoldAnswer] = field(default_factory=dict)
    trajectories: Mapping[str, Episode] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


def answers_of(benchmark: Benchmark, *, no_call: str = "") -> Solutions:
    """The tasks that one answer solves, and nothing else: what ToolACE-R's rounds train on.

    Args:
        benchmark: The tasks.
        no_call: What to answer where no call is right; such tasks are left out without it.
    """
    found = gold_answers(benchmark, no_call=no_call)
    return Solutions(answers=found.answers, left_out=found.left_out)


def solutions_of(
    benchmark: Benchmark,
    spec: TaskSpec,
    *,
    no_call: str = "",
    prompting: Prompting = Prompting(),  # noqa: B008 - immutable
    settings: EvaluationSettings | None = None,
) -> Solutions:
    """The solution of every task that has one.

    A task that one answer solves is taught with that answer, any other with its gold trajectory.
    Where tools are run and ``settings`` let the policy speak after them, the words at the end are
    taught too: who learns calls alone goes on calling.

    Args:
        benchmark: The tasks to train on.
        spec: Where they come from.
        no_call: What to answer where no call is right; such tasks are left out without it.
        prompting: How tools and calls are written.
        settings: How the tasks are asked.

    Raises:
        DatasetError: A file that the tasks came from can not be read any more.

    Example:
        >>> from agentkit_training.tasks.loading import load_tasks_for_training
        >>> spec = TaskSpec(source="arithmetic", train=2)
        >>> found = solutions_of(load_tasks_for_training(spec).train, spec)
        >>> len(found.answers), len(found.trajectories), len(found.left_out)
        (0, 2, 0)
    """
    answers = gold_answers(benchmark, no_call=no_call).answers
    if prompting.tools_in == "prompt" and _speaks_after_calls(benchmark, settings):
        answers = {name: one for name, one in answers.items() if not one.calls}
    longer = tuple(task for task in benchmark.tasks if task.task_id not in answers)
    found = _trajectories(replace(benchmark, tasks=longer), spec, no_call, prompting)
    return Solutions(answers=answers, trajectories=found.episodes, left_out=found.left_out)


def _speaks_after_calls(benchmark: Benchmark, settings: EvaluationSettings | None) -> bool:
    """Whether calls are answered, and there is a turn left to say something then."""
    steps = None if settings is None else settings.max_steps
    return benchmark.environment is not None and steps != 1


def _trajectories(
    benchmark: Benchmark, spec: TaskSpec, no_call: str, prompting: Prompting
) -> GoldTrajectories:
    """The trajectories of tasks that no single answer solves, where they can be taught."""
    if not benchmark.tasks:
        return GoldTrajectories()
    found = gold_trajectories(spec, benchmark, no_call=no_call)
    if prompting.tools_in == "prompt":
        return found
    refused = [LeftOut(where=one, reason=_IN_TEMPLATE) for one in found.episodes]
    return GoldTrajectories(left_out=(*found.left_out, *refused))
