"""What holds for any episodes, in any order."""

from hypothesis import given, settings, strategies as st

from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.evaluation.results import summarise

SPECS = st.lists(
    st.fixed_dictionaries(
        {
            "task": st.sampled_from(["a", "b", "c"]),
            "attempt": st.integers(0, 2),
            "session": st.sampled_from(["s1", "s2"]),
            "passed": st.booleans(),
            "ends": st.booleans(),
            "judged": st.booleans(),
            "user_turn": st.integers(0, 1),
            "user_turns": st.integers(1, 2),
            "fault": st.sampled_from([None, None, None, "gold_error", "checker_error"]),
        }
    ),
    max_size=10,
)
KEPT = 4
"""Examples that are kept of a tool while it is not known which attempts count."""


def episodes_of(make, specs):
    """Episodes as specified; the category goes by the task."""
    maker = make()
    return [maker.episode(category=f"of {spec['task']}", **spec) for spec in specs]


@settings(deadline=None, max_examples=30)
@given(specs=SPECS, data=st.data())
def test_order_changes_nothing(make_once, specs, data):
    """Any permutation of the episodes gives the same report, to the last digit."""
    episodes = episodes_of(make_once, specs)
    shuffled = data.draw(st.permutations(episodes))
    assert summarise(shuffled) == summarise(episodes)


@settings(deadline=None, max_examples=30)
@given(specs=SPECS)
def test_counts_add_up(make_once, specs):
    """Categories add up to the total; every attempt is in exactly one place."""
    report = summarise(episodes_of(make_once, specs))
    total = report.total
    for name in ("tasks", "attempts", "passed", "turns", "errors", "unjudged", "unfinished"):
        assert getattr(total, name) == sum(getattr(one, name) for one in report.categories)
    begun = {(spec["task"], spec["attempt"]) for spec in specs}
    assert total.finished + total.unfinished == len(begun)
    assert total.passed <= total.attempts
    assert sum(one.attempts for one in report.results) == total.attempts
    assert sum(one.passed for one in report.results) == total.passed
    assert sum(total.turn_labels.values()) == total.turns  # one turn, one diagnosis
    assert total.usage.prompt_tokens == sum(one.usage.prompt_tokens for one in report.categories)
    assert total.usage.prompt_tokens <= report.spent.prompt_tokens
    assert report.tokens.count == total.attempts


@settings(deadline=None, max_examples=30)
@given(specs=SPECS)
def test_a_category_alone_is_reported_as_among_others(make_once, specs):
    """Splitting a run by category and reporting each part gives the same rows."""
    episodes = episodes_of(make_once, specs)
    for group in summarise(episodes).categories:
        own = [one for one in episodes if one.metadata["category"] == group.name]
        assert summarise(own).categories == (group,)


@settings(deadline=None, max_examples=30)
@given(specs=SPECS)
def test_examples_are_of_counted_failures(make_once, specs):
    """Whatever a table refers to is among the examples, and each of them failed and counts."""
    episodes = {one.episode_id: one for one in episodes_of(make_once, specs)}
    report = summarise(episodes.values())
    shown = {one.episode_id for one in report.examples}
    for one in (*report.tools, *report.parameters):
        assert shown.issuperset(one.examples)
        assert one.examples or len(episodes) > KEPT  # tries that do not count may have crowded
    for example in report.examples:
        assert example.label not in NOT_FAILURES
        assert episodes[example.episode_id].verdict is None or (
            episodes[example.episode_id].verdict.fault is None
        )


def test_counts_of_a_run_are_those_of_its_episodes(maker):
    """A run of some hundred episodes is counted as a reader would by hand."""
    episodes = list(maker.run_of(tasks=30, faulty=0.05))
    counted = [one for one in episodes if one.verdict.fault is None]
    report = summarise(iter(episodes))
    assert report.total.attempts == len(counted)
    assert report.total.passed == sum(one.verdict.passed for one in counted)
    assert sum(report.total.episode_labels.values()) == len(counted)
