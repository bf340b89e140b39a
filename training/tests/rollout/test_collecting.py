"""Rollouts: the runtime's own agent with a policy, token for token."""

from __future__ import annotations

import dataclasses

from agentkit_training import PolicyModel, collect, tiny_policy


async def test_each_task_is_tried_as_often_as_asked(policy, shop):
    """The rollouts come ordered by task, then by attempt, with verdict, labels and tokens."""
    rollouts = await collect(PolicyModel(policy, max_tokens=8), shop, attempts=3)
    wanted = [(task.task_id, number) for task in shop.tasks for number in range(3)]
    assert [(one.task_id, one.attempt) for one in rollouts] == wanted
    for one in rollouts:
        assert one.labels
        assert one.fault == ""
        (sequence,) = one.sequences
        assert all(sequence.written)
        assert 1 <= len(sequence.completion) <= 8
        assert one.episodes[0].verdict is not None


async def test_equal_questions_of_two_tasks_are_answered_apart(shop):
    """Tasks in the same words are samples of their own, each as it would be drawn alone."""
    task = shop.tasks[0]
    tasks = (task, dataclasses.replace(task, task_id="twin"))
    found = [
        await collect(
            PolicyModel(tiny_policy(), max_tokens=8),
            dataclasses.replace(shop, tasks=asked),
            attempts=2,
        )
        for asked in (tasks, tasks[1:])
    ]
    written = [[one.sequences[0].completion for one in each] for each in found]
    assert len(set(written[0])) == 4
    assert written[0][2:] == written[1]


async def test_equal_seeds_give_equal_rollouts(shop):
    """A repetition writes the same tokens; another seed writes others."""
    first, again, other = [
        await collect(PolicyModel(tiny_policy(), max_tokens=8), shop, attempts=2, seed=seed)
        for seed in (0, 0, 7)
    ]
    assert [one.sequences for one in first] == [one.sequences for one in again]
    assert [one.sequences for one in first] != [one.sequences for one in other]


async def test_attempts_of_a_group_differ(policy, shop):
    """At temperature 1 the attempts at one task are samples, not copies; at 0 they are equal."""
    one_task = dataclasses.replace(shop, tasks=shop.tasks[:1])
    model = PolicyModel(policy, max_tokens=8)
    sampled = await collect(model, one_task, attempts=4)
    assert len({one.sequences for one in sampled}) == 4
    greedy = await collect(model, one_task, attempts=4, temperature=0)
    assert len({one.sequences for one in greedy}) == 1
