"""Prompts that are longer than the model's window."""

from __future__ import annotations

import dataclasses

from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.engines.packing import training_rows
from agentkit_training.generation.decoding import Completion


async def test_a_prompt_longer_than_the_window_makes_a_rollout_with_a_fault(shop):
    """The rollout is counted and says why; it is not trained on, and the others go on."""
    policy = tiny_policy(context_tokens=400)
    long = dataclasses.replace(shop.tasks[0], request="What does an apple cost? " * 60)
    mixed = dataclasses.replace(shop, tasks=(long, *shop.tasks[1:]))
    model = PolicyModel(policy, max_tokens=8)
    rollouts = await collect(model, mixed, attempts=2)
    assert [bool(one.fault) for one in rollouts] == [True, True, False, False, False, False]
    assert "tiny has room for 400" in rollouts[0].fault
    assert len(training_rows(rollouts)) == 4


@dataclasses.dataclass(kw_only=True)
class Repeating:
    """Writes the same call again and again."""

    tokenizer: object

    async def write(self, prompts):
        """It for each prompt."""
        call = '{"calls": [{"name": "get_price", "arguments": {"item": "bread"}}]}'
        ids = (*self.tokenizer.encode(call, add_special_tokens=False), self.tokenizer.eos_token_id)
        one = Completion(ids=ids, logprobs=(-1.0,) * len(ids), is_ended=True)
        return [one] * len(prompts)


async def test_a_policy_that_fills_its_window_has_failed(shop):
    """What it did is judged and trained on: it is no fault of the task."""
    policy = tiny_policy(context_tokens=700)
    model = PolicyModel(policy, writer=Repeating(tokenizer=policy.tokenizer))
    rollouts = await collect(model, shop, attempts=1)
    for one in rollouts:
        (episode,) = one.episodes
        assert (episode.stop_reason, one.fault, one.passed) == ("error", "", False)
        assert len(episode.turns) > 1
    assert len(training_rows(rollouts)) == 3


async def test_an_answer_is_cut_where_the_window_ends(shop):
    """The last answer that fits is as long as the room that is left for it."""
    wide = await collect(PolicyModel(tiny_policy(), max_tokens=1), shop, attempts=1)
    prompt = max(len(one.sequences[0].prompt) for one in wide)
    model = PolicyModel(tiny_policy(context_tokens=prompt + 3), max_tokens=50)
    rollouts = await collect(model, shop, attempts=2)
    assert max(len(one.sequences[0]) for one in rollouts) <= prompt + 3
    assert not any(one.fault for one in rollouts)
