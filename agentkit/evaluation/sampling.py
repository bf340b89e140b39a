"""Choosing questions: the same ones for the same seed, spread over all categories."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import chain, zip_longest

from agentkit.evaluation.task import Task


def stratified(tasks: Iterable[Task], size: int, *, seed: int = 0) -> tuple[Task, ...]:
    """A sample with equally many tasks of each category, as far as there are enough.

    Categories take turns, in an order that changes from round to round, so that any prefix of the
    sample is spread over them as well: a run that is cut short by its time budget stays fair.

    Args:
        tasks: What to choose from.
        size: How many to take; all when there are fewer.
        seed: Makes the choice; it does not depend on the order of categories.

    Example:
        >>> tasks = [
        ...     Task(task_id=f"{category}{n}", category=category, request="?", offered=())
        ...     for category in ("a", "b")
        ...     for n in range(10)
        ... ]
        >>> sorted(task.category for task in stratified(tasks, 6))
        ['a', 'a', 'a', 'b', 'b', 'b']
    """
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.category, []).append(task)
    shuffled = [_shuffled(groups[category], f"{seed}/{category}") for category in sorted(groups)]
    rounds = [[task for task in one if task is not None] for one in zip_longest(*shuffled)]
    mixed = [_shuffled(one, f"{seed}/{number}") for number, one in enumerate(rounds)]
    return tuple(chain.from_iterable(mixed))[:size]


def _shuffled(tasks: list[Task], seed: str) -> list[Task]:
    # A sample for people to repeat, not a secret.
    return random.Random(seed).sample(tasks, len(tasks))  # noqa: S311 - see above
