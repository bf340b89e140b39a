"""Which tasks a step tries: the same in every repetition, whatever was done before."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from agentkit.errors import UsageError
from agentkit.evaluation import Task
from agentkit_training.coevolution.settings import CoevolutionSettings

_AGAIN = 1 << 40  # far from the seeds of any step
_WARM_UP = 1 << 61  # and of any further attempt


def step_count(tasks: Sequence[Task], settings: CoevolutionSettings) -> int:
    """How many steps a run has: those asked for, or as many as its epochs come to."""
    if settings.steps is not None:
        return settings.steps
    return settings.epochs * _steps_per_epoch(tasks, settings)


def tries_in_all(tasks: Sequence[Task], settings: CoevolutionSettings) -> int:
    """How often a task is tried with all its attempts, in the whole run.

    Example:
        >>> from agentkit.evaluation import Task
        >>> tasks = [
        ...     Task(task_id=name, category="", request="", offered=(), expects=())
        ...     for name in "abc"
        ... ]
        >>> tries_in_all(tasks, CoevolutionSettings(steps=3, tasks_per_step=2))
        5
    """
    if not tasks:
        return 0
    epochs, steps = divmod(step_count(tasks, settings), _steps_per_epoch(tasks, settings))
    return epochs * len(tasks) + min(len(tasks), steps * settings.tasks_per_step)


def step_tasks(
    tasks: Sequence[Task], settings: CoevolutionSettings, *, step: int
) -> tuple[Task, ...]:
    """The tasks of a step.

    Each epoch goes through all tasks in an order of its own, which depends on the seed and the
    epoch alone. Its last step may have fewer.

    Args:
        tasks: All of them.
        settings: Seed and tasks a step.
        step: From 0.

    Raises:
        UsageError: There are no tasks.
    """
    if not tasks:
        raise UsageError("there are no tasks to train on")
    epoch, place = divmod(step, _steps_per_epoch(tasks, settings))
    order = list(tasks)
    random.Random(f"{settings.seed}:{epoch}").shuffle(order)  # noqa: S311 - no secret
    size = settings.tasks_per_step
    return tuple(order[place * size : (place + 1) * size])


def step_seed(settings: CoevolutionSettings, *, step: int, again: int = 0) -> int:
    """The seed of a step's first attempt; each further attempt has the next one.

    No two steps of a run share one, and neither do runs whose seeds differ, up to a million
    attempts at a task.

    Args:
        settings: Seed and attempts.
        step: From 0.
        again: How often the step was asked for again.
    """
    return settings.seed * 1_000_000 + step * settings.group_size + again * _AGAIN


def warm_up_seed(settings: CoevolutionSettings) -> int:
    """The seed of the first attempt at the seed tasks, which a step may try again: none of theirs.

    Args:
        settings: The seed.
    """
    return settings.seed * 1_000_000 + _WARM_UP


def _steps_per_epoch(tasks: Sequence[Task], settings: CoevolutionSettings) -> int:
    return math.ceil(len(tasks) / settings.tasks_per_step)
