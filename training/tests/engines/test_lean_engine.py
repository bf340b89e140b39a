"""The lean engine learns, and goes on from where it was saved."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
import torch

from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.errors import DivergedError
from agentkit_training.rewards import rewarded

FAST = OptimizerSettings(learning_rate=3e-3)
SMALL = OptimizerSettings(learning_rate=1e-5)


def even(rollout):
    """The share of even tokens: an aim that any policy can learn."""
    ids = [one for sequence in rollout.sequences for one in sequence.completion]
    return {"even": sum(token % 2 == 0 for token in ids) / len(ids)}


class Shop:
    """A source that lets a policy try the same tasks in each step."""

    def __init__(self, policy, benchmark, reward=even):
        self.model = PolicyModel(policy, max_tokens=12)
        self.benchmark = benchmark
        self.reward = reward
        self.means = []

    def rollouts(self, step, share):
        asked = collect(self.model, self.benchmark, attempts=8, seed=1000 * step)
        judged = rewarded(asyncio.run(asked), self.reward)
        self.means.append(sum(one.reward for one in judged) / len(judged))
        return judged

    def finished(self, report):
        self.last = report


def weights(policy):
    return torch.cat([one.detach().flatten() for one in policy.model.parameters()])


def test_the_reward_rises(policy, shop):
    """Some twenty steps make a random policy prefer what is rewarded."""
    source = Shop(policy, shop)
    LeanEngine(optimizer=FAST).train(policy, source, steps=24)
    assert sum(source.means[-4:]) / 4 > sum(source.means[:4]) / 4 + 0.1


@pytest.mark.parametrize(
    ("kind", "settings"), [(torch.float32, FAST), (torch.bfloat16, FAST), (torch.bfloat16, SMALL)]
)
def test_a_restored_run_equals_one_that_was_not_broken_off(shop, tmp_path, kind, settings):
    """Two steps, saved, restored and gone on with, end in the weights of four steps, in bf16 too."""
    whole, parted = tiny_policy(), tiny_policy()
    for policy in (whole, parted):
        policy.model.to(kind)
    LeanEngine(optimizer=settings).train(whole, Shop(whole, shop), steps=4)
    first = LeanEngine(optimizer=settings)
    first.train(parted, Shop(parted, shop), steps=2)
    first.save(tmp_path)
    second = LeanEngine(optimizer=settings)
    second.restore(tmp_path)
    second.train(parted, Shop(parted, shop), steps=4)
    assert torch.equal(weights(whole), weights(parted))


def test_equal_rewards_change_nothing(policy, shop):
    """A step whose groups have no spread reads nothing and leaves the weights as they are."""
    before = weights(policy)
    source = Shop(policy, shop, reward=lambda _: {"same": 1.0})
    LeanEngine(optimizer=FAST).train(policy, source, steps=1)
    assert torch.equal(before, weights(policy))
    assert source.last.read_rows == 0


def test_a_loss_that_is_no_number_stops_before_the_weights_change(policy, shop):
    """A diverged step raises, says which, and leaves the weights as they were."""
    before = weights(policy)

    class Broken(Shop):
        def rollouts(self, step, share):
            found = super().rollouts(step, share)
            return [dataclasses.replace(one, weight=float("inf")) for one in found]

    with pytest.raises(DivergedError, match="at step 0"):
        LeanEngine(optimizer=FAST).train(policy, Broken(policy, shop), steps=1)
    assert torch.equal(before, weights(policy))


def test_a_reward_that_raises_is_a_fault_of_its_rollout(policy, shop):
    """Rollouts whose reward function fails are recorded and not trained on."""

    def reward(rollout):
        if rollout.attempt == 0:
            raise RuntimeError("no gold")
        return even(rollout)

    found = rewarded(asyncio.run(collect(PolicyModel(policy, max_tokens=4), shop)), reward)
    assert {one.fault for one in found if one.attempt == 0} == {
        "the reward raised RuntimeError: no gold"
    }
    assert not any(one.fault for one in found if one.attempt)
