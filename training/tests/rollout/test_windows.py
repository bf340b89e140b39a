"""Prompts that are longer than the model's window."""

from __future__ import annotations

import dataclasses

from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.engines.rows import training_rows


async def test_a_prompt_longer_than_the_window_makes_a_rollout_with_a_fault(shop):
    """The rollout is counted and says why; it is not trained on, and the others go on."""
    policy = tiny_policy(context_tokens=400)
    long = dataclasses.replace(shop.tasks[0], request="What does an apple cost? " * 60)
    mixed = dataclasses.replace(shop, tasks=(long, *shop.tasks[1:]))
    model = PolicyModel(policy, max_tokens=8)
    rollouts = await collect(model, mixed, attempts=2)
    assert [bool(one.fault) for one in rollouts] == [True, True, False, False, False, False]
    assert "tiny has room for 400" in rollouts[0].fault
    assert model.counts.too_long == 2
    assert len(training_rows(rollouts)) == 4


async def test_an_answer_is_cut_where_the_window_ends(shop):
    """The last answer that fits is as long as the room that is left for it."""
    wide = await collect(PolicyModel(tiny_policy(), max_tokens=1), shop, attempts=1)
    prompt = max(len(one.sequences[0].prompt) for one in wide)
    model = PolicyModel(tiny_policy(context_tokens=prompt + 3), max_tokens=50)
    rollouts = await collect(model, shop, attempts=2)
    assert max(len(one.sequences[0]) for one in rollouts) <= prompt + 3
    assert not any(one.fault for one in rollouts)
