"""Held-out tasks that have decided before."""

from __future__ import annotations

from hypothesis import given, strategies as st

from agentkit.evolution.gates import (
    MARKS,
    GateConfig,
    GateReport,
    PairedScore,
    offline_gate,
    resemblance,
    task_marks,
    with_uses,
)

IDS = st.sets(st.text(max_size=8), max_size=60)


@given(IDS, IDS)
def test_resemblance_is_a_share_and_the_same_both_ways(some, others):
    """A set resembles itself wholly, and one that has nothing in common with it not at all."""
    found = resemblance(task_marks(some), task_marks(others))
    assert 0 <= found <= 1
    assert found == resemblance(task_marks(others), task_marks(some))
    assert resemblance(task_marks(some), task_marks(some)) == (1 if some else 0)
    assert resemblance(task_marks(some), task_marks(others - some)) == 0 or len(some) > MARKS


def test_a_few_tasks_more_are_still_the_same_set():
    """So adding one each night does not begin the count anew."""
    tasks = [f"task-{at}" for at in range(50)]
    earlier = [task_marks(tasks[: 40 + at]) for at in range(10)]
    report = with_uses(
        offline_gate([PairedScore(task=one, control=0, candidate=1) for one in tasks]),
        tasks=tasks,
        earlier=[*earlier, task_marks(["another", "set"])],
        rules=GateConfig(max_uses=10),
    )
    assert report.statistics["earlier_uses"] == 10
    assert report.reason.endswith("these tasks have decided 10 times before: bring fresh ones")
    assert report.decision == "pass"  # it counts, and corrects nothing


def test_few_uses_are_counted_and_not_spoken_of():
    """The first comparison says nothing of it."""
    report = GateReport(gate="offline", decision="fail", reason="no gain")
    found = with_uses(report, tasks=["a"], earlier=[], rules=GateConfig())
    assert (found.reason, found.statistics) == ("no gain", {"earlier_uses": 0})
