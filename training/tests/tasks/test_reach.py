"""Tasks that no policy can pass as they are asked are told, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.evaluation import (
    Benchmark,
    ExactCalls,
    GoldCall,
    NumberAnswer,
    Task,
    TextAnswer,
    with_tools as environment_of,
)
from agentkit_training.tasks.loading import out_of_reach
from agentkit_training.tasks.splits import TaskSplits

CALLS = ExactCalls(calls=(GoldCall(name="look", arguments={}),))
WORDS = TextAnswer(text="here", match="contains")

WORLD = environment_of([])


def splits(*expects, environment=WORLD):
    """Parts with a test task for each of these expectations."""
    none = Benchmark(name="own", tasks=(), definitions=(), environment=environment)
    tasks = tuple(
        Task(task_id=str(at), category="", request="?", offered=(), expects=one)
        for at, one in enumerate(expects)
    )
    return TaskSplits(train=none, validation=none, test=replace(none, tasks=tasks))


@pytest.mark.parametrize("words", [WORDS, NumberAnswer(value="3")], ids=["text", "number"])
def test_calls_and_words_need_two_turns(words):
    """With one turn they are told, by the part that they are in; with two they are not."""
    parts = splits((CALLS, words), (CALLS,))
    assert "1 of 2 in test; give asking.max_steps 2 or more" in out_of_reach(parts, 1)
    assert out_of_reach(parts, 2) == ""
    assert out_of_reach(parts, None) == ""


def test_without_an_environment_there_is_one_turn():
    """Where nothing runs the tools a policy has one turn, unless more are asked for."""
    parts = splits((CALLS, WORDS), environment=None)
    assert "1 of 1 in test" in out_of_reach(parts, None)
    assert out_of_reach(parts, 2) == ""
