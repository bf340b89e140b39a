"""Tasks: samples and catalogues."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.evaluation.task import Task, import_catalogue, stratified
from agentkit.library import LibraryChange
from agentkit.library.opening import open_store
from agentkit.tools.definition import ToolDefinition


def test_the_catalogue_is_one_version(sample):
    """All definitions arrive in one version, in the benchmark's order."""
    library = import_catalogue(open_store("memory:"), sample)
    assert library.version == 1
    assert library.definitions == sample.definitions


def test_a_second_import_changes_nothing(sample):
    """Importing what is there already makes no new version."""
    store = open_store("memory:")
    import_catalogue(store, sample)
    assert import_catalogue(store, sample).version == 1


def test_an_older_release_is_replaced(sample):
    """A definition that the same source changed gets a new revision."""
    store = open_store("memory:")
    import_catalogue(store, sample)
    first = sample.definitions[0]
    words = replace(first.description, summary="Changed upstream.")
    changed = replace(first, description=words)
    newer = replace(sample, definitions=(changed, *sample.definitions[1:]))
    library = import_catalogue(store, newer)
    assert library.version == 2
    assert library[first.name].definition.description.summary == "Changed upstream."


def test_a_tool_from_elsewhere_is_never_overwritten(sample):
    """A tool of the user's own under the same name stops the import with an error."""
    store = open_store("memory:")
    own = ToolDefinition(name="set_lamp")
    store.commit(LibraryChange(proposal_id="own", upserts=(own,)), expected_version=0)
    with pytest.raises(UsageError, match="already holds another tool named 'set_lamp'"):
        import_catalogue(store, sample)
    assert store.load().version == 1


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
