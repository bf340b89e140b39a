"""The reference policy stays as it was while the policy learns."""

from __future__ import annotations

import pytest
import torch

from agentkit_training import TokenSequence, tiny_policy
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.packing import TrainingRow
from agentkit_training.engines.update import update
from agentkit_training.policy.lora import LoraSettings, save_adapter, with_lora
from agentkit_training.policy.reference import reference_policy

SETTINGS = LoraSettings(rank=4, dropout=0.5)
IDS = (5, 6, 7, 8)


def logits(policy):
    with torch.no_grad():
        return policy.model(input_ids=torch.tensor([IDS])).logits


def learned(policy):
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for one in policy.trainable:
            one.add_(0.1 * torch.randn(one.shape, generator=generator))
    return policy


def step(policy, reference, coefficient=0.5):
    rows = [
        TrainingRow(
            sequence=TokenSequence(
                prompt=IDS, completion=(9, last), written=(True, True), logprobs=(-1.0, -1.0)
            ),
            advantage=advantage,
        )
        for last, advantage in ((10, 1.0), (11, -1.0))
    ]
    optimizer = torch.optim.SGD(policy.trainable, lr=0.5)
    return update(
        policy,
        rows,
        optimizer,
        Objective(kl_coefficient=coefficient),
        reference=reference,
        max_gradient_norm=0,
    )


def kinds():
    return {
        "full": tiny_policy,
        "fresh adapters": lambda: with_lora(tiny_policy(), SETTINGS),
        "adapters that have learned": lambda: learned(with_lora(tiny_policy(), SETTINGS)),
    }


@pytest.mark.parametrize("kind", list(kinds()))
def test_the_reference_does_not_follow_the_policy(kind):
    """After the policy has learned, the reference still says what the policy said before."""
    policy = kinds()[kind]()
    before = logits(policy)
    trainable = len(policy.trainable)
    reference = reference_policy(policy)
    assert torch.equal(logits(reference), before)
    step(policy, reference)
    assert not torch.equal(logits(policy), before)
    assert torch.equal(logits(reference), before)
    assert len(policy.trainable) == trainable


@pytest.mark.parametrize("kind", list(kinds())[1:])
def test_a_switched_reference_has_the_gradient_of_a_copied_one(kind):
    """Reading the reference through switched adapters changes no gradient of the policy."""
    settings = LoraSettings(rank=4)
    ends = []
    for switched in (True, False):
        policy = with_lora(tiny_policy(), settings)
        if kind != "fresh adapters":
            learned(policy)
        if switched:
            reference = reference_policy(policy)
        else:
            reference = with_lora(tiny_policy(), settings)
            if kind != "fresh adapters":
                learned(reference)
            reference.model.requires_grad_(requires_grad=False)
        step(policy, None)  # away from the reference, so that the divergence has a gradient
        step(policy, reference)
        ends.append(torch.cat([one.detach().flatten() for one in policy.trainable]))
    torch.testing.assert_close(ends[0], ends[1], atol=1e-6, rtol=1e-5)


def test_a_copy_of_adapters_is_not_saved(tmp_path):
    """The reference's adapters stay out of what is saved, and a newer reference replaces them."""
    policy = learned(with_lora(tiny_policy(), SETTINGS))
    reference_policy(policy)
    learned(policy)
    now = logits(policy)
    assert torch.equal(logits(reference_policy(policy)), now)
    save_adapter(policy, tmp_path / "adapter")
    assert {one.name for one in (tmp_path / "adapter").iterdir() if one.is_dir()} == set()


def test_dropout_is_off_in_the_reference():
    """While the policy trains with dropout, the reference says the same each time."""
    policy = learned(with_lora(tiny_policy(), SETTINGS))
    reference = reference_policy(policy)
    policy.model.train()
    assert torch.equal(logits(reference), logits(reference))
    assert policy.model.training
