"""Tasks: samples, catalogues, and calls scored without an episode."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.evaluation import NoCall
from agentkit.evaluation.scoring import score_calls
from agentkit.evaluation.task import Task, import_catalogue, stratified
from agentkit.library import LibraryChange
from agentkit.library.opening import open_store
from agentkit.messages import ToolCall
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


@pytest.fixture
def score(sample):
    """Scores calls, given as (name, arguments), against a task of the sample."""

    def judge(task_id, *calls):
        task = next(t for t in sample.tasks if t.task_id == task_id)
        made = [
            ToolCall(call_id=str(n), name=name, arguments=arguments)
            for n, (name, arguments) in enumerate(calls)
        ]
        return score_calls(made, task, sample.definitions)

    return judge


def test_the_gold_call_is_exact(score):
    """An allowed value for each parameter, optional ones left out, is exactly right."""
    verdict = score("simple_python_0", ("kettle.boil", {"litres": 1.5}))
    assert verdict.exact
    assert verdict.right_tools
    assert verdict.evidence == ()


def test_a_wrong_value_keeps_the_right_tool(score):
    """A wrong value is not exact, the tool is still right, and the evidence names the value."""
    verdict = score("simple_python_0", ("kettle.boil", {"litres": 2}))
    assert not verdict.exact
    assert verdict.right_tools
    assert verdict.evidence[0].parameter == "litres"
    assert verdict.evidence[0].actual == 2


def test_a_namesake_counts_on_its_own_line(score):
    """A tool of the same upstream name is wrong strictly and right by name."""
    verdict = score("simple_python_1", ("set_lamp__2", {"room": "kitchen", "state": "off"}))
    assert not verdict.exact
    assert not verdict.right_tools
    assert verdict.exact_by_name
    assert verdict.right_tools_by_name


def test_a_missing_parallel_call_is_told(score):
    """One of two parallel calls is not enough."""
    verdict = score("parallel_0", ("set_lamp", {"room": "hall", "state": "on"}))
    assert not verdict.exact
    assert not verdict.right_tools
    assert "set_lamp was not called" in map(str, verdict.evidence)


def test_a_call_too_many_is_told(score):
    """A spurious call makes the answer wrong and is named."""
    verdict = score(
        "multiple_1",
        ("postage", {"grams": 20, "country": "Iceland"}),
        ("kettle.boil", {"litres": 1.0}),
    )
    assert not verdict.exact
    assert "kettle.boil was called and should not have been" in map(str, verdict.evidence)


def test_no_call_is_right_where_none_fits(score):
    """In an irrelevance question words are right and any call is wrong."""
    assert score("irrelevance_0").exact
    assert not score("irrelevance_0", ("kettle.boil", {"litres": 1.0})).exact


def test_any_call_is_right_where_there_is_no_gold(score):
    """A relevance question wants some call."""
    assert score("live_relevance_0-0-0", ("set_lamp", {})).exact
    assert not score("live_relevance_0-0-0").exact


def test_a_call_to_an_unknown_tool_is_wrong(score):
    """A made-up tool name scores nothing and raises nothing."""
    assert not score("simple_python_1", ("no_such_tool", {})).right_tools_by_name


def test_a_score_becomes_a_verdict(sample):
    """The verdict that an episode keeps says passed, the score and the evidence."""
    task = Task(task_id="t", category="c", request="?", offered=(), expects=(NoCall(),))
    verdict = score_calls([], task, ()).to_verdict()
    assert verdict.passed
    assert verdict.score == 1.0
    assert verdict.evidence == ()
    assert verdict.metrics == {
        "right_tools": True,
        "exact_by_name": True,
        "right_tools_by_name": True,
    }
