"""``out_of_reach``: tasks that no policy can pass as they are asked."""

from __future__ import annotations

from agentkit.evaluation import (
    AllowedCalls,
    AnyCall,
    Benchmark,
    CustomExpectation,
    ExactCalls,
    NumberAnswer,
    Rubric,
    Task,
    TextAnswer,
)
from agentkit_training.tasks.splits import TaskSplits

_CALLS = (AllowedCalls, AnyCall, CustomExpectation, ExactCalls)
_WORDS = (NumberAnswer, Rubric, TextAnswer)


def out_of_reach(parts: TaskSplits, max_steps: int | None) -> str:
    """How many tasks expect calls and words where one turn has room for either; empty for none.

    Nothing is learned from such a task by rewards, and measured it says nothing.

    Args:
        parts: The tasks.
        max_steps: Turns of a policy; None for what the tasks have: one where nothing runs tools.
    """
    told = [
        f"{sum(map(_wants_both, part.tasks))} of {len(part.tasks)} in {name}"
        for name, part in parts
        if _is_one_turn(part, max_steps) and any(map(_wants_both, part.tasks))
    ]
    if not told:
        return ""
    return (
        f"tasks that expect calls and words after them can not be passed in one turn: "
        f"{', '.join(told)}; give asking.max_steps 2 or more"
    )


def _is_one_turn(part: Benchmark, max_steps: int | None) -> bool:
    return max_steps == 1 or (max_steps is None and part.environment is None)


def _wants_both(task: Task) -> bool:
    return any(
        any(isinstance(one, _CALLS) for one in turn.expects)
        and any(isinstance(one, _WORDS) for one in turn.expects)
        for turn in task.turns
    )
