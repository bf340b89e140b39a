"""Fine-tuning learns, resumes exactly, and stops before it spoils anything, on real weights too."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
import torch

from agentkit.errors import ModelNotFoundError
from agentkit_training import Policy, load_policy, tiny_policy
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.errors import CheckpointError, DivergedError
from agentkit_training.fine_tuning.examples import Example, make_examples
from agentkit_training.fine_tuning.training import SftSettings, mean_loss, sft
from agentkit_training.toolace.difficulty import gold_answers

FAST = SftSettings(
    optimizer=OptimizerSettings(learning_rate=3e-3, schedule="cosine", warmup_ratio=0.1),
    batch_size=2,
    epochs=3,
    save_every=1,
)


def examples(count=5):
    return [
        Example(
            task_id=str(number),
            prompt=tuple(range(10, 20 + number)),
            completion=(100 + number, 101 + number, 2),
        )
        for number in range(count)
    ]


def weights(policy):
    return torch.cat([one.detach().float().flatten() for one in policy.model.parameters()])


def coarse(seed=0):
    """A policy in bfloat16."""
    policy = tiny_policy(seed=seed)
    policy.model.to(torch.bfloat16)
    return policy


def adapted():
    """A policy that learns in LoRA adapters alone."""
    from peft import LoraConfig, get_peft_model

    policy = tiny_policy()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", lora_dropout=0.2)
        model = get_peft_model(policy.model, config)
    return dataclasses.replace(policy, model=model)


KINDS = {"fp32": tiny_policy, "bf16": coarse, "lora": adapted}


@pytest.mark.parametrize("kind", KINDS)
def test_the_gold_answers_become_likelier(kind):
    """A few epochs lower the loss on what is learned: plain, in bfloat16, and in adapters."""
    policy: Policy = KINDS[kind]()
    before = mean_loss(policy, examples())
    sft(policy, examples(), dataclasses.replace(FAST, epochs=8))
    assert mean_loss(policy, examples()) < before - 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_goes_on_equals_one_that_was_not_broken_off(kind, tmp_path):
    """Interrupted after any step and started again, a run ends in the same weights."""
    whole, parted = KINDS[kind](), KINDS[kind]()
    steps = sft(whole, examples(), FAST).steps

    def interrupt(step):
        if step.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sft(parted, examples(), FAST, folder=tmp_path, listen=interrupt)
    fresh = KINDS[kind]()
    report = sft(fresh, examples(), FAST, folder=tmp_path)
    assert report.resumed_at == 4
    assert [one.loss for one in report.steps] == [one.loss for one in steps[4:]]
    assert torch.equal(weights(whole), weights(fresh))


def test_a_checkpoint_of_another_run_is_refused_with_the_difference(tmp_path):
    """Other examples or settings are another run; more checkpoints or smaller parts are not."""
    sft(tiny_policy(), examples(), FAST, folder=tmp_path)
    same = dataclasses.replace(FAST, save_every=7, input_tokens=100)
    assert sft(tiny_policy(), examples(), same, folder=tmp_path).resumed_at == 9
    with pytest.raises(CheckpointError, match="examples was"):
        sft(tiny_policy(), examples(4), FAST, folder=tmp_path)
    with pytest.raises(CheckpointError, match=r"settings\.seed was"):
        sft(tiny_policy(), examples(), dataclasses.replace(FAST, seed=1), folder=tmp_path)


def test_a_damaged_checkpoint_is_told(tmp_path):
    """A file that is no checkpoint is named, and nothing of it is run."""
    (tmp_path / "sft.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match="can not be read"):
        sft(tiny_policy(), examples(), FAST, folder=tmp_path)


def test_a_checkpoint_that_can_not_be_written_leaves_the_earlier_one(tmp_path):
    """Where no folder can be made the error says so; the policy keeps what it learned."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="can not be written"):
        sft(tiny_policy(), examples(), FAST, folder=tmp_path / "file" / "inside")


def test_a_loss_that_is_no_number_stops_with_the_last_good_weights(tmp_path):
    """The diverged step is not taken: the weights are those after the step before it."""
    policy = tiny_policy()
    good = []

    def spoil(step):
        good.append(weights(policy))
        if step.step == 1:
            norm = policy.model.model.norm
            norm.register_forward_hook(lambda _, __, output: output * float("nan"))

    with pytest.raises(DivergedError, match="at step 2"):
        sft(policy, examples(), FAST, folder=tmp_path, listen=spoil)
    assert torch.equal(weights(policy), good[-1])
    fresh = tiny_policy()
    assert sft(fresh, examples(), FAST, folder=tmp_path).resumed_at == 2


def test_a_checkpoint_of_weights_that_give_no_numbers_is_not_written(tmp_path):
    """A rate that is far too high leaves finite weights without a loss; the folder stays good."""
    wild = OptimizerSettings(learning_rate=1e9)
    fast = dataclasses.replace(FAST, optimizer=wild, save_every=1)
    with pytest.raises(DivergedError, match=r"no checkpoint was written.*lower learning rate"):
        sft(tiny_policy(), examples(), fast, folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [tiny_policy, adapted], ids=["whole", "lora"])
def test_activations_computed_again_learn_the_same(kind):
    """Each layer is read twice for a step, and the weights come to the same."""
    learned, read = [], []
    for wanted in (False, True):
        policy, calls = kind(), []
        layer = next(m for name, m in policy.model.named_modules() if name.endswith("layers.0"))
        layer.mlp.register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
        with torch.random.fork_rng():
            torch.manual_seed(0)
            sft(policy, examples(), dataclasses.replace(FAST, gradient_checkpointing=wanted))
        learned.append(weights(policy))
        read.append(len(calls))
        assert not policy.model.is_gradient_checkpointing
    assert torch.allclose(*learned, atol=1e-6)
    assert read[1] == 2 * read[0]


@pytest.mark.weights
def test_a_few_steps_lower_the_loss_of_a_real_model(shop):
    """SmolLM2 in bfloat16 knows gold answers better after four steps than before."""
    try:
        policy = load_policy("local:smollm2-135m")
    except ModelNotFoundError as error:
        pytest.skip(f"run `agentkit models install smollm2-135m` first: {error}")
    rows = asyncio.run(make_examples(policy, shop, gold_answers(shop).answers)).rows
    before = mean_loss(policy, rows)
    rate = OptimizerSettings(learning_rate=1e-4)
    report = sft(policy, rows, SftSettings(optimizer=rate, batch_size=3, epochs=4))
    after = mean_loss(policy, rows)
    assert after < before
    assert report.steps[0].loss == pytest.approx(before, rel=0.05)
