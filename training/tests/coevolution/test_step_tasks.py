"""Which tasks a step tries."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, strategies as st

from agentkit.evaluation import Task
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.coevolution.tasks import step_count, step_seed, step_tasks, warm_up_seed


def made(count):
    """So many tasks."""
    return [Task(task_id=str(n), category="", request="", offered=()) for n in range(count)]


@given(
    count=st.integers(1, 20), size=st.integers(1, 8), epochs=st.integers(1, 3), seed=st.integers()
)
def test_an_epoch_goes_through_all_tasks_once(count, size, epochs, seed):
    """Over a run of whole epochs each task is tried as often as there are epochs."""
    settings = CoevolutionSettings(tasks_per_step=size, epochs=epochs, seed=seed)
    tasks = made(count)
    steps = [step_tasks(tasks, settings, step=step) for step in range(step_count(tasks, settings))]
    counts = Counter(task.task_id for step in steps for task in step)
    assert counts == {task.task_id: epochs for task in tasks}
    assert all(len({task.task_id for task in step}) == len(step) <= size for step in steps)


def test_the_order_follows_from_seed_and_epoch():
    """The same again for the same seed; another order for another seed and in the next epoch."""
    tasks = made(12)
    settings = CoevolutionSettings(tasks_per_step=12)
    first = step_tasks(tasks, settings, step=0)
    assert first == step_tasks(tasks, settings, step=0)
    assert first != step_tasks(tasks, settings, step=1)
    assert first != step_tasks(tasks, CoevolutionSettings(tasks_per_step=12, seed=1), step=0)


@given(step=st.integers(0, 1000), later=st.integers(1, 1000), group=st.integers(1, 64))
def test_no_two_steps_share_a_seed(step, later, group):
    """The attempts of one step end before those of the next begin."""
    settings = CoevolutionSettings(group_size=group)
    last = step_seed(settings, step=step) + group - 1
    assert last < step_seed(settings, step=step + later)
    assert last < warm_up_seed(settings)
