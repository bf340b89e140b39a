"""LoRA: adapters alone learn, and are saved, loaded, merged and switched off."""

import json
import sys

import pytest
import torch

from agentkit.errors import MissingExtraError
from agentkit_training import tiny_policy
from agentkit_training.errors import PolicyError
from agentkit_training.policy.lora import (
    LoraSettings,
    load_adapter,
    merged,
    save_adapter,
    with_lora,
)
from agentkit_training.policy.saving import base_digest

SMALL = LoraSettings(rank=4, alpha=8)


def logits(policy, ids=(5, 6, 7, 8, 9)):
    with torch.no_grad():
        return policy.model(input_ids=torch.tensor([ids])).logits


def disturbed(policy):
    """The policy with adapters that say something."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for one in policy.trainable:
            one.add_(0.1 * torch.randn(one.shape, generator=generator))
    return policy


def test_a_fresh_adapter_changes_nothing(policy):
    """B is 0 at the start, so that an adapted policy says what it said before."""
    before = logits(policy)
    assert torch.equal(logits(with_lora(policy, SMALL)), before)


def test_adapters_alone_are_trainable(policy):
    """Everything trainable belongs to an adapter, and it is a small part of the whole."""
    adapted = with_lora(policy, SMALL)
    learning = [n for n, one in adapted.model.named_parameters() if one.requires_grad]
    assert learning
    assert all(".lora_" in name for name in learning)
    assert len(adapted.trainable) == 28


def test_adapters_over_bf16_weights_are_float32_unless_asked(policy):
    """Small steps are not lost to rounding by default."""
    policy.model.to(torch.bfloat16)
    assert {one.dtype for one in with_lora(policy, SMALL).trainable} == {torch.float32}
    half = tiny_policy()
    half.model.to(torch.bfloat16)
    settings = LoraSettings(rank=4, full_precision=False)
    assert {one.dtype for one in with_lora(half, settings).trainable} == {torch.bfloat16}


def test_a_saved_adapter_gives_the_same_policy_on_the_same_base(policy, tmp_path):
    """Saved and loaded onto a fresh copy of the base, the adapter gives equal logits."""
    adapted = disturbed(with_lora(policy, SMALL))
    save_adapter(adapted, tmp_path / "adapter")
    again = load_adapter(tiny_policy(), tmp_path / "adapter")
    assert torch.equal(logits(adapted), logits(again))
    assert len(again.trainable) == 28
    frozen = load_adapter(tiny_policy(), tmp_path / "adapter", trainable=False)
    assert frozen.trainable == []


def test_a_saved_adapter_tells_nothing_of_the_machine(policy, tmp_path):
    """The base is named as the policy is, not by the folder where its weights lay."""
    policy.model.config._name_or_path = "/home/somebody/weights"
    policy.model.name_or_path = "/home/somebody/weights"
    save_adapter(with_lora(policy, SMALL), tmp_path / "adapter")
    assert (
        json.loads((tmp_path / "adapter/adapter_config.json").read_text())[
            "base_model_name_or_path"
        ]
        == "tiny"
    )
    for file in (tmp_path / "adapter").iterdir():
        assert b"somebody" not in file.read_bytes()


def test_an_adapter_of_another_size_is_refused(policy, tmp_path):
    """The error names a layer and both shapes."""
    save_adapter(with_lora(policy, SMALL), tmp_path / "adapter")
    wider = tiny_policy(width=96)
    with pytest.raises(PolicyError, match=r"over other weights .* than those of tiny"):
        load_adapter(wider, tmp_path / "adapter")
    with pytest.raises(PolicyError, match=r"does not fit tiny: it has a matrix of shape \(.*_proj"):
        load_adapter(wider, tmp_path / "adapter", other_base=True)
    shallow = tiny_policy(layers=1)
    with pytest.raises(PolicyError, match="has no such layer"):
        load_adapter(shallow, tmp_path / "adapter", other_base=True)


def test_an_adapter_of_other_weights_is_refused_unless_wanted(policy, tmp_path):
    """Weights of the same shape but other values are told apart by their digest."""
    save_adapter(with_lora(policy, SMALL), tmp_path / "adapter")
    other = tiny_policy(seed=3)
    with pytest.raises(PolicyError, match="other_base=True"):
        load_adapter(other, tmp_path / "adapter")
    assert load_adapter(other, tmp_path / "adapter", other_base=True).is_adapted


def test_the_digest_of_a_base_does_not_change_with_precision(policy):
    """An adapter trained over bf16 weights fits the same weights as float32."""
    policy.model.to(torch.bfloat16)
    digest = base_digest(policy)
    policy.model.to(torch.float32)
    assert base_digest(policy) == digest
    assert base_digest(with_lora(policy, SMALL)) == digest


def test_merging_gives_plain_weights_that_say_the_same(policy):
    """The merged policy has no adapters and equal logits; the adapted one is left as it is."""
    adapted = disturbed(with_lora(policy, SMALL))
    before = logits(adapted)
    plain = merged(adapted)
    assert not plain.is_adapted
    torch.testing.assert_close(logits(plain), before, atol=1e-4, rtol=1e-4)
    assert torch.equal(logits(adapted), before)
    assert plain.trainable
    assert with_lora(plain, SMALL).is_adapted


def test_without_peft_the_error_names_the_line_to_type(policy, monkeypatch):
    """An absent package is a MissingExtraError with the pip line."""
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match="pip install agentkit-training"):
        with_lora(policy)
