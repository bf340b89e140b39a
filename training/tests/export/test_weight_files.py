"""Policies and adapters as GGUF files: llama.cpp computes with them what the policy does, Gemma 3 included."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import torch
from gguf import GGUFWriter
from safetensors.torch import load_file, save_file

from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest
from agentkit_training import tiny_policy
from agentkit_training.errors import ExportError
from agentkit_training.export.weights import (
    Architecture,
    adapter_to_gguf,
    merged_weight,
    weights_to_gguf,
)
from agentkit_training.policy.lora import save_adapter


@pytest.fixture
def tuned(policy, tiny_gguf):
    """The policy after every weight was changed; its base weights lie in ``tiny_gguf``."""
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=draw) * 0.1)
    return policy


def test_llama_cpp_computes_what_the_policy_does(
    tuned,
    tiny_gguf,
    prompts,
    next_tokens_of_file,
    next_tokens_of_policy,
    farthest,
    tmp_path,
):
    """Log-probabilities are as near as half precision allows."""
    file = weights_to_gguf(tuned, tmp_path / "tuned.gguf", like=tiny_gguf)
    got = next_tokens_of_file(file, prompts)
    assert farthest(got, next_tokens_of_policy(tuned, prompts)) < 4e-3


def test_adapters_are_merged(
    policy,
    tiny_gguf,
    with_adapter,
    prompts,
    next_tokens_of_file,
    next_tokens_of_policy,
    farthest,
    tmp_path,
):
    """A policy with an adapter gives weights that compute what both do together."""
    trained = with_adapter(policy, modules_to_save=["norm"])
    with torch.no_grad():
        for name, parameter in trained.model.named_parameters():
            if "modules_to_save" in name:
                parameter.mul_(1.5)
    file = weights_to_gguf(trained, tmp_path / "merged.gguf", like=tiny_gguf)
    got = next_tokens_of_file(file, prompts)
    assert farthest(got, next_tokens_of_policy(trained, prompts)) < 4e-3


@pytest.mark.filterwarnings(
    "ignore:Model (has|with) `tie_word_embeddings", "ignore:`lora_bias=True`"
)
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"target_modules": ["embed_tokens"]}, "two layers share"),
        ({"target_modules": ["lm_head"]}, "two layers share"),
        ({"use_dora": True}, "more than a product"),
        ({"lora_bias": True}, "more than a product"),
    ],
)
def test_what_would_be_merged_wrongly_is_refused(
    policy, tiny_gguf, with_adapter, tmp_path, settings, complaint
):
    """Shared weights would change twice, and DoRA's lengths and biases would be lost."""
    with pytest.raises(ExportError, match=complaint):
        weights_to_gguf(with_adapter(policy, **settings), tmp_path / "out.gguf", like=tiny_gguf)


def test_the_local_model_takes_the_file(tuned, tiny_gguf, tmp_path):
    """Words and template come from the base file, so that the runtime can ask it."""
    local = pytest.importorskip("agentkit_local", reason="the plugin is not installed")
    file = weights_to_gguf(tuned, tmp_path / "tuned.gguf", like=tiny_gguf)
    with local.LocalModel(file, context_tokens=256, max_tokens=3, threads=1) as model:
        asked = ModelRequest(messages=(UserMessage(text="Hello"),))
        answer = asyncio.run(model.complete(asked))
    assert model.name == "local:tuned"
    assert answer.usage.completion_tokens > 0


@pytest.mark.parametrize("other", [{"layers": 3}, {"layers": 1}, {"width": 32}])
def test_a_file_of_other_weights_is_refused(tiny_gguf, tmp_path, other):
    """Too few layers, too many, or other shapes: the tensor is named and nothing is written."""
    with pytest.raises(ExportError, match=r"not a file of the weights|has no name"):
        weights_to_gguf(tiny_policy(**other), tmp_path / "out.gguf", like=tiny_gguf)
    assert not list(tmp_path.glob("*out.gguf*"))


@pytest.mark.parametrize(
    "settings",
    [{}, {"use_rslora": True, "r": 8}, {"target_modules": ["q_proj", "k_proj"], "strength": 2.0}],
    ids=["everywhere", "rank-stabilised", "queries and keys"],
)
def test_llama_cpp_computes_with_an_adapter_what_the_policy_does(
    policy,
    tiny_gguf,
    with_adapter,
    prompts,
    next_tokens_of_file,
    next_tokens_of_policy,
    farthest,
    tmp_path,
    settings,
):
    """The likeliest tokens have nearly the same log-probabilities, and not those of the base."""
    untrained = next_tokens_of_policy(policy, prompts)
    trained = with_adapter(policy, **settings)
    save_adapter(trained, tmp_path / "peft")
    base = Architecture.of_gguf(tiny_gguf)
    file = adapter_to_gguf(tmp_path / "peft", tmp_path / "adapter.gguf", base=base)
    got = next_tokens_of_file(tiny_gguf, prompts, adapter=file)
    assert farthest(got, next_tokens_of_policy(trained, prompts)) < 3e-3
    assert farthest(got, untrained) > 0.03


def test_half_the_precision_is_half_the_file(policy, tiny_gguf, with_adapter, tmp_path):
    """f16 takes half of the bytes that f32 does."""
    save_adapter(with_adapter(policy, r=16), tmp_path / "peft")
    base = Architecture.of_gguf(tiny_gguf)
    sizes = [
        adapter_to_gguf(tmp_path / "peft", tmp_path / f"{one}.gguf", base=base, precision=one)
        .stat()
        .st_size
        for one in ("f16", "f32")
    ]
    assert sizes[0] < 0.6 * sizes[1]


def test_a_coarse_adapter_is_written_with_the_numbers_it_has(
    policy, tiny_gguf, with_adapter, tmp_path
):
    """An adapter in bfloat16 gives the file of the same numbers in float32."""
    save_adapter(with_adapter(policy), tmp_path / "peft")
    weights = tmp_path / "peft" / "adapter_model.safetensors"
    coarse = {name: one.bfloat16() for name, one in load_file(weights).items()}
    files = []
    for name, dtype in (("coarse", torch.bfloat16), ("full", torch.float32)):
        save_file({key: one.to(dtype) for key, one in coarse.items()}, weights)
        base = Architecture.of_gguf(tiny_gguf)
        files.append(adapter_to_gguf(tmp_path / "peft", tmp_path / f"{name}.gguf", base=base))
    assert files[0].read_bytes() == files[1].read_bytes()


def test_merging_for_export_leaves_the_policy_alone(policy, with_adapter):
    """Its own weights stay as they are to the last bit, and the sum holds the adapter."""
    trained = with_adapter(policy)
    name = "base_model.model.model.layers.0.mlp.up_proj.base_layer.weight"
    before = trained.model.get_parameter(name).clone()
    merged = merged_weight(trained, name)
    assert torch.equal(trained.model.get_parameter(name), before)
    assert not torch.allclose(merged, before)


@pytest.mark.filterwarnings("ignore:Model (has|with) `tie_word_embeddings")
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"modules_to_save": ["norm"]}, "modules_to_save"),
        ({"bias": "all"}, "bias"),
        ({"target_modules": ["embed_tokens"]}, "lora_embedding_"),
    ],
)
def test_what_a_gguf_adapter_can_not_hold_is_told(
    policy, tiny_gguf, with_adapter, tmp_path, settings, complaint
):
    """Nothing of what was trained is left out without a word; merged weights can hold it."""
    save_adapter(with_adapter(policy, **settings), tmp_path / "peft")
    with pytest.raises(ExportError, match=rf"{complaint}.*weights_to_gguf"):
        adapter_to_gguf(
            tmp_path / "peft", tmp_path / "a.gguf", base=Architecture.of_gguf(tiny_gguf)
        )
    assert not (tmp_path / "a.gguf").exists()


def test_another_base_is_told_by_its_shapes(policy, tiny_gguf, with_adapter, tmp_path):
    """An adapter of a narrower model names the tensor and both sizes."""
    save_adapter(with_adapter(tiny_policy(width=32)), tmp_path / "peft")
    with pytest.raises(ExportError, match=r"'blk\.0\.\w+\.weight' as \d+x\d+ numbers, .* have"):
        adapter_to_gguf(
            tmp_path / "peft", tmp_path / "a.gguf", base=Architecture.of_gguf(tiny_gguf)
        )


def test_damaged_adapters_are_told(policy, tiny_gguf, with_adapter, tmp_path):
    """A missing file, one that is cut off, and one half of a pair each have a message."""
    base, folder = Architecture.of_gguf(tiny_gguf), tmp_path / "peft"

    def complaint():
        with pytest.raises(ExportError) as caught:
            adapter_to_gguf(folder, tmp_path / "a.gguf", base=base)
        return str(caught.value)

    assert "has no adapter_config.json" in complaint()
    save_adapter(with_adapter(policy), folder)
    weights = folder / "adapter_model.safetensors"
    whole, tensors = weights.read_bytes(), load_file(weights)
    weights.write_bytes(whole[:-100])
    assert "is damaged" in complaint()
    save_file({k: v for k, v in tensors.items() if "lora_A" not in k}, weights)
    assert "one half" in complaint()
    (folder / "adapter_config.json").write_text("{}")
    assert "is damaged: 'peft_type'" in complaint()


def test_an_architecture_that_nobody_looked_at_is_refused(tmp_path):
    """Weights are never written in a layout that was guessed."""
    falcon = tmp_path / "falcon.gguf"
    writer = GGUFWriter(falcon, "falcon")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ExportError, match=r"llama, gemma3, .* the architecture 'falcon'"):
        Architecture.of_gguf(falcon)
    (tmp_path / "odd.gguf").write_bytes(b"GGUF" + bytes(40))
    with pytest.raises(ExportError, match=r"odd\.gguf"):
        Architecture.of_gguf(tmp_path / "odd.gguf")


@pytest.fixture
def gemma(policy):
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
    merged = weights_to_gguf(trained, tmp_path / "merged.gguf", like=base)
    assert farthest(next_tokens_of_file(merged, prompts), wanted) < 6e-3
