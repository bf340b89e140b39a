"""Hidden constraints: parts that share nothing, worlds that share everything but what is right."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from agentkit_training.tasks.hidden_constraints.family import (
    ALL_KINDS,
    fillings_of,
    gold_calls,
    hidden_constraints,
    tool_of,
)
from agentkit_training.tasks.hidden_constraints.tools import TOOLS
from agentkit_training.tasks.splits import leakage

PARTS = ("train", "validation", "test")


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_parts_share_no_question_and_no_entity(seed):
    """A name, place or number that one part asks about is in no other."""
    parts = hidden_constraints(seed=seed, kinds=ALL_KINDS)
    benchmarks = dict(parts)
    for one in PARTS:
        for other in PARTS:
            if one != other:
                assert not leakage(benchmarks[one], benchmarks[other], functions="free").questions
    for tool in TOOLS.values():
        for slot in tool.slots:
            if slot.is_entity:
                words = [{one.words for one in fillings_of(slot, part, seed)} for part in PARTS]
                assert all(words)
                assert sum(map(len, words)) == len(set().union(*words)) == len(slot.fillings)


@given(seed=st.integers(0, 10_000), distractors=st.integers(0, 3))
@settings(max_examples=10)
def test_equal_seeds_give_equal_tasks(seed, distractors):
    """The same seed gives the same tasks; another seed gives others."""
    asked = {"kinds": ALL_KINDS, "train": 5, "distractors": distractors}
    first, again = (hidden_constraints(seed=seed, **asked).train.tasks for _ in range(2))
    assert first == again
    assert hidden_constraints(seed=seed + 1, **asked).train.tasks != first


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_the_swapped_world_asks_the_same_and_wants_something_else(seed):
    """Questions, tools and texts are equal in both worlds, and most gold calls are not."""
    first, swapped = (
        hidden_constraints(world, seed=seed, kinds=ALL_KINDS) for world in ("first", "swapped")
    )
    assert first.test.definitions == swapped.test.definitions
    for one, other in zip(first.test.tasks, swapped.test.tasks, strict=True):
        assert (one.task_id, one.request, one.offered) == (
            other.task_id,
            other.request,
            other.offered,
        )
        if tool_of(one).kind != "requires":  # whose question gives what both worlds want
            assert gold_calls(one)[-1] != gold_calls(other)[-1]
