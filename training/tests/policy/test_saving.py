"""A saved policy is the same policy when it is loaded; the reference policy stays as it was."""

import json
import resource
from contextlib import contextmanager

import pytest
import torch

from agentkit_training import TokenSequence, load_policy, tiny_policy
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.packing import TrainingRow
from agentkit_training.engines.update import update
from agentkit_training.errors import CheckpointError
from agentkit_training.policy.lora import LoraSettings, save_adapter, with_lora
from agentkit_training.policy.reference import reference_policy
from agentkit_training.policy.saving import restore_weights, save_policy, save_weights

IDS = (5, 6, 7, 8)


def logits(policy):
    with torch.no_grad():
        return policy.model(input_ids=torch.tensor([IDS])).logits


def changed(policy):
    with torch.no_grad():
        for one in policy.trainable:
            one.add_(0.01)
    return policy


@contextmanager
def full_disk(size=100_000):
    """No file may grow beyond some bytes, as when the disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_saved_policy_is_loaded_as_it_was(policy, tmp_path, precision):
    """Logits, name, end tokens, template and special tokens are equal."""
    save_policy(policy, tmp_path / "first")
    policy = load_policy(tmp_path / "first", precision=precision)
    save_policy(policy, tmp_path / "p")
    again = load_policy(tmp_path / "p", precision=precision)
    assert torch.equal(logits(policy), logits(again))
    assert (again.name, again.end_ids) == (policy.name, policy.end_ids)
    assert again.tokenizer.chat_template == policy.tokenizer.chat_template
    assert again.tokenizer.special_tokens_map == policy.tokenizer.special_tokens_map
    assert again.pad_id == policy.pad_id
    assert next(again.model.parameters()).dtype == next(policy.model.parameters()).dtype
    assert load_policy(tmp_path / "p", name="other").name == "other"


def test_the_end_of_text_holds_whatever_the_tokenizer_file_says(policy, tmp_path):
    """A reloaded tokenizer with another end of text gets the one that was saved."""
    save_policy(policy, tmp_path / "p")
    file = tmp_path / "p/tokenizer_config.json"
    config = json.loads(file.read_text())
    assert config["eos_token"] == "<|im_end|>"
    file.write_text(json.dumps(config | {"eos_token": "<|im_start|>", "pad_token": None}))
    again = load_policy(tmp_path / "p", precision="fp32")
    assert again.tokenizer.eos_token == "<|im_end|>"
    assert again.tokenizer.pad_token == policy.tokenizer.pad_token
    assert again.end_ids == policy.end_ids


def test_a_full_disk_leaves_the_older_policy(policy, tmp_path):
    """A failed save is a CheckpointError; what was there is whole, and no scraps are left."""
    save_policy(policy, tmp_path / "p")
    before = logits(policy)
    with pytest.raises(CheckpointError, match="could not be written"), full_disk():
        save_policy(changed(policy), tmp_path / "p")
    assert torch.equal(logits(load_policy(tmp_path / "p", precision="fp32")), before)
    assert [one.name for one in tmp_path.iterdir()] == ["p"]


@pytest.mark.parametrize("make", [lambda p: p, lambda p: with_lora(p, LoraSettings(rank=2))])
def test_trainable_weights_are_restored_in_place(make, tmp_path):
    """What was saved comes back to the bit, in the very parameters that an optimiser knows."""
    policy = make(tiny_policy())
    changed(policy)
    before = logits(policy)
    save_weights(policy, tmp_path)
    kept = policy.trainable
    changed(policy)
    assert not torch.equal(logits(policy), before)
    restore_weights(policy, tmp_path)
    assert torch.equal(logits(policy), before)
    assert all(a is b for a, b in zip(kept, policy.trainable, strict=True))


def test_weights_of_another_policy_are_refused_with_the_difference(policy, tmp_path):
    """Nothing is changed when names, shapes or precision differ."""
    save_weights(policy, tmp_path)
    before = logits(other := tiny_policy(width=96))
    with pytest.raises(CheckpointError, match=r"of shape \(\d+, 64\) in the file"):
        restore_weights(other, tmp_path)
    assert torch.equal(logits(other), before)
    with pytest.raises(CheckpointError, match="the file lacks"):
        restore_weights(with_lora(tiny_policy()), tmp_path)
    half = tiny_policy()
    half.model.to(torch.bfloat16)
    with pytest.raises(CheckpointError, match=r"float32 .*bfloat16"):
        restore_weights(half, tmp_path)


def test_damaged_weights_are_refused(policy, tmp_path):
    """A missing or cut file is an error that names it."""
    with pytest.raises(CheckpointError, match="holds no weights"):
        restore_weights(policy, tmp_path)
    save_weights(policy, tmp_path)
    file = tmp_path / "trainable.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match="can not be read"):
        restore_weights(policy, tmp_path)


def test_a_full_disk_at_a_checkpoint_is_an_error(policy, tmp_path):
    """Weights that can not be written whole are told of."""
    with pytest.raises(CheckpointError, match="could not be written"), full_disk():
        save_weights(policy, tmp_path)


SETTINGS = LoraSettings(rank=4, dropout=0.5)


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
