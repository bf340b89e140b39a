"""What the tests of export share: tiny base weights as GGUF, an adapter that shows, llama.cpp."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import gguf
import pytest
import torch
from gguf import GGUFWriter
from peft import LoraConfig, get_peft_model

from agentkit_training import Policy
from agentkit_training.export.weights import Architecture

LIKELIEST = 20
Prompts: TypeAlias = Sequence[Sequence[int]]
NextTokens: TypeAlias = list[dict[int, float]]
EVERYWHERE = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@pytest.fixture
def with_adapter():
    """Puts a LoRA adapter on a policy whose random weights change every answer."""

    def adapted(policy: Policy, *, strength: float = 0.5, **settings: Any) -> Policy:
        config = LoraConfig(
            **{"r": 4, "lora_alpha": 8, "target_modules": list(EVERYWHERE)} | settings
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            model = get_peft_model(policy.model, config)
        draw = torch.Generator().manual_seed(1)
        for name, parameter in model.named_parameters():
            if "lora_B" in name and parameter.ndim > 1:
                noise = torch.randn(parameter.shape, generator=draw) * strength
                parameter.data = (noise / parameter.shape[1] ** 0.5).to(parameter.dtype)
        return replace(policy, model=model.eval())

    return adapted


def architecture(policy: Policy) -> Architecture:
    """What GGUF calls a small policy's model."""
    config = policy.model.config
    names = {"mistral": "llama", "gemma3_text": "gemma3"}
    return Architecture(
        name=names.get(config.model_type, config.model_type),
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        key_heads=config.num_key_value_heads,
        shapes={},
    )


@pytest.fixture
def tiny_gguf(policy, tmp_path, write_base):
    """The weights of the tiny policy in float32, as llama.cpp reads them."""
    return write_base(policy, tmp_path / "tiny.gguf")


@pytest.fixture
def write_base():
    """Writes the weights of a small policy as a GGUF file of base weights."""

    def write(policy: Policy, path: Path, *, rope_base: float = 10_000.0) -> Path:
        base, config = architecture(policy), policy.model.config
        writer = GGUFWriter(path, base.name)
        writer.add_type("model")
        writer.add_block_count(base.layers)
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(base.heads)
        writer.add_head_count_kv(base.key_heads)
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_freq_base(rope_base)
        if base.name == "gemma3":
            writer.add_sliding_window(config.sliding_window)
        _add_words(writer, policy)
        for name, parameter in policy.model.named_parameters():
            weight = base.laid_out(name, parameter.detach().numpy())
            writer.add_tensor(base.tensor_name(name), weight)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


def _add_words(writer: GGUFWriter, policy: Policy) -> None:
    tokenizer = policy.tokenizer
    core = json.loads(tokenizer.backend_tokenizer.to_str())
    words = sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1])
    special = set(tokenizer.all_special_tokens) | {"<|im_start|>"}
    kinds = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([word for word, _ in words])
    writer.add_token_types([kinds.CONTROL if w in special else kinds.NORMAL for w, _ in words])
    writer.add_token_merges([" ".join(pair) for pair in core["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_add_bos_token(False)
    writer.add_chat_template(tokenizer.chat_template)


@pytest.fixture
def next_tokens_of_file(tmp_path):
    """The likeliest next tokens after each of some prompts, as llama.cpp computes them."""
    llama = pytest.importorskip("xllamacpp", reason="llama.cpp is not installed")
    sockets = itertools.count()

    def compute(path: Path, prompts: Prompts, *, adapter: Path | None = None) -> NextTokens:
        parameters = llama.CommonParams()
        parameters.model.path, parameters.n_ctx = str(path), 512
        parameters.warmup, parameters.verbosity = False, 1
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        parameters.hostnames = [str(tmp_path / f"{next(sockets)}.sock")]
        if adapter is not None:
            parameters.lora_adapters = [llama.CommonAdapterLoraInfo(str(adapter), 1.0)]
        server, found = llama.Server(parameters), []
        for prompt in prompts:
            # Half a character is not told, so a whole one is taken whatever is likeliest.
            asked = {"prompt": list(prompt), "max_tokens": 1, "logprobs": LIKELIEST}
            answer = server.handle_completions({**asked, "grammar": 'root ::= "a"'})
            (token,) = answer["choices"][0]["logprobs"]["content"]
            found.append({one["id"]: one["logprob"] for one in token["top_logprobs"]})
        return found

    return compute


@pytest.fixture
def next_tokens_of_policy():
    """The same of a policy."""

    def compute(policy: Policy, prompts: Prompts) -> NextTokens:
        found = []
        for prompt in prompts:
            with torch.no_grad():
                logits = policy.model(input_ids=torch.tensor([list(prompt)])).logits[0, -1].float()
            top = logits.log_softmax(-1).topk(LIKELIEST)
            found.append(dict(zip(top.indices.tolist(), top.values.tolist(), strict=True)))
        return found

    return compute


@pytest.fixture
def prompts(policy):
    """Beginnings of a question, in tokens."""
    ids: list[int] = policy.tokenizer("What does an apple cost, and what does bread?")["input_ids"]
    return [ids[:length] for length in (1, 5, len(ids))]


@pytest.fixture
def farthest():
    """How far two computations are apart: the largest difference of a log-probability.

    Of tokens that both have among the likeliest; where hardly any is, they are apart for good.
    """

    def apart(one: NextTokens, other: NextTokens) -> float:
        largest = 0.0
        for mine, theirs in zip(one, other, strict=True):
            both = mine.keys() & theirs.keys()
            if len(both) < LIKELIEST * 0.8:
                return float("inf")
            largest = max(largest, *(abs(mine[token] - theirs[token]) for token in both))
        return largest

    return apart
