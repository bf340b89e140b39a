"""Gemma 3: other names, another order of rows, norms that count from one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from agentkit_training import Policy
from agentkit_training.export.weights import Architecture, adapter_to_gguf, weights_to_gguf
from agentkit_training.policy.lora import save_adapter


@pytest.fixture
def gemma(policy: Policy) -> Policy:
    """A random Gemma 3 of two layers, with the words of the tiny policy."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    config = Gemma3TextConfig(
        vocab_size=len(policy.tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=512,
        max_position_embeddings=1024,
        layer_types=["sliding_attention"] * 2,  # as llama.cpp has the first five of every six
        pad_token_id=policy.tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=policy.tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = Gemma3ForCausalLM(config).eval()
        for parameter in model.parameters():  # norms that are zero would prove nothing
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return replace(policy, model=model, name="gemma")


def test_llama_cpp_computes_what_gemma_does(
    gemma,
    write_base,
    with_adapter,
    prompts,
    next_tokens_of_file,
    next_tokens_of_policy,
    farthest,
    tmp_path,
):
    """Base, base with an adapter, and merged weights all give the policy's numbers."""
    base = write_base(gemma, tmp_path / "gemma.gguf", rope_base=1e6)
    plain = next_tokens_of_policy(gemma, prompts)
    assert farthest(next_tokens_of_file(base, prompts), plain) < 6e-3
    trained = with_adapter(gemma)
    wanted = next_tokens_of_policy(trained, prompts)
    assert farthest(wanted, plain) > 0.1
    save_adapter(trained, tmp_path / "peft")
    file = tmp_path / "adapter.gguf"
    adapter_to_gguf(tmp_path / "peft", file, base=Architecture.of_gguf(base))
    assert farthest(next_tokens_of_file(base, prompts, adapter=file), wanted) < 6e-3
    merged = weights_to_gguf(trained, tmp_path / "merged.gguf", like=base, precision="f32")
    assert farthest(next_tokens_of_file(merged, prompts), wanted) < 6e-3
