"""Choosing questions."""

from collections import Counter

from hypothesis import given, strategies as st

from agentkit.evaluation.task import Task, stratified

counts = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 12), min_size=1)


def make(sizes):
    """Tasks of those many per category."""
    return [
        Task(task_id=f"{category}{n}", category=category, request="?", offered=())
        for category, count in sizes.items()
        for n in range(count)
    ]


@given(counts, st.integers(0, 40), st.integers(0, 5))
def test_every_prefix_is_spread_over_the_categories(sizes, size, seed):
    """Wherever the sample is cut, categories that still have tasks differ by one at most."""
    sample = stratified(make(sizes), size, seed=seed)
    assert len(sample) == min(size, sum(sizes.values()))
    assert len({task.task_id for task in sample}) == len(sample)
    taken = Counter()
    for one in sample:
        taken[one.category] += 1
        open_counts = [taken[c] for c, count in sizes.items() if taken[c] < count]
        assert not open_counts or max(taken.values()) - min(open_counts) <= 1


def test_the_seed_decides():
    """The same seed gives the same sample whatever the order of the tasks' categories."""
    tasks = make({"a": 30, "b": 30})
    other = make({"b": 30, "a": 30})
    assert stratified(tasks, 10, seed=1) == stratified(other, 10, seed=1)
    assert stratified(tasks, 10, seed=1) != stratified(tasks, 10, seed=2)
