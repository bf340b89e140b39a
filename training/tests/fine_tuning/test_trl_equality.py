"""Fine-tuning takes the steps that TRL's SFTTrainer takes on the same examples."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from agentkit_training import tiny_policy
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.errors import DivergedError
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.fine_tuning.training import SftSettings, sft
from agentkit_training.fine_tuning.trl import sft_with_trl

EXAMPLES = [
    Example(
        task_id=str(number),
        prompt=tuple(range(10, 20 + 3 * number)),
        completion=tuple(range(100 + number, 103 + 2 * number)),
    )
    for number in range(4)
]
SETTINGS = SftSettings(
    optimizer=OptimizerSettings(learning_rate=1e-3, schedule="cosine", warmup_ratio=0.2),
    batch_size=4,
    epochs=4,
)


def weights(policy):
    return torch.cat([one.detach().flatten() for one in policy.model.parameters()])


def test_both_take_the_same_steps():
    """Losses, gradient norms, rates and the weights of all steps agree, in parts as well."""
    ours, theirs = tiny_policy(), tiny_policy()
    wanted = sft(ours, EXAMPLES, SETTINGS).steps
    found = sft_with_trl(theirs, EXAMPLES, SETTINGS).steps
    assert [one.step for one in found] == [one.step for one in wanted]
    for name in ("loss", "gradient_norm", "learning_rate"):
        assert [getattr(one, name) for one in found] == pytest.approx(
            [getattr(one, name) for one in wanted], rel=1e-4, abs=1e-6
        )
    assert torch.allclose(weights(ours), weights(theirs), atol=2e-5)


def coarse():
    """A policy in bfloat16."""
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    return policy


def test_small_steps_move_coarse_weights_alike():
    """With a rate at which bfloat16 rounds most steps away, float32 masters take them in both."""
    settings = replace(SETTINGS, optimizer=OptimizerSettings(learning_rate=1e-5), epochs=8)
    begin = weights(coarse())
    ours, theirs = (trained(train, settings) for train in (sft, sft_with_trl))
    moved = [float((one != begin).float().mean()) for one in (ours, theirs)]
    assert moved[0] > 0.1
    assert moved[1] == pytest.approx(moved[0], rel=0.1)
    assert (ours == theirs).float().mean() > 0.9


def trained(train, settings):
    """The weights of a coarse policy after its steps."""
    policy = coarse()
    train(policy, EXAMPLES, settings)
    return weights(policy)


def test_trl_stops_before_a_step_that_is_no_number():
    """A gradient that is not a number raises, and the weights are those before the step."""
    policy = tiny_policy()
    before = weights(policy)
    norm = policy.model.model.norm
    norm.register_forward_hook(lambda _, __, output: output * float("nan"))
    with pytest.raises(DivergedError, match="at step 0"):
        sft_with_trl(policy, EXAMPLES, SETTINGS)
    assert torch.equal(weights(policy), before)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
@pytest.mark.parametrize("warmup_ratio", [0.0, 0.5])
def test_both_rise_and_fall_alike(schedule, warmup_ratio):
    """Each step has the rate of the one-process run, whatever the schedule and the warm-up."""
    optimizer = OptimizerSettings(learning_rate=1e-3, schedule=schedule, warmup_ratio=warmup_ratio)
    settings = replace(SETTINGS, optimizer=optimizer)
    wanted, found = (
        [one.learning_rate for one in train(tiny_policy(), EXAMPLES, settings).steps]
        for train in (sft, sft_with_trl)
    )
    assert found == pytest.approx(wanted)
    assert (found[0] == 0) == bool(warmup_ratio)
