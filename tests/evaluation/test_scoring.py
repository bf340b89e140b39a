"""Comparing calls with what a task expects."""

import pytest

from agentkit.evaluation import NoCall
from agentkit.evaluation.scoring import score_calls
from agentkit.evaluation.task import Task
from agentkit.messages import ToolCall


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
