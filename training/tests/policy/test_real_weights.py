"""Real weights: SmolLM2 is loaded from GGUF, answers, and is saved as it is."""

from __future__ import annotations

import asyncio

import pytest
import torch

from agentkit import Agent
from agentkit.errors import AgentKitError
from agentkit.models.base import ModelSettings
from agentkit_training import PolicyModel, load_policy
from agentkit_training.policy.lora import LoraSettings, load_adapter, save_adapter, with_lora
from agentkit_training.policy.saving import save_policy

pytestmark = pytest.mark.weights

QUESTION = "What is the capital of France?"
SMOLLM2 = "local:smollm2-135m"


def loaded(name, **options):
    try:
        return load_policy(name, **options)
    except AgentKitError as error:
        pytest.skip(f"the weights are not there: {error}")


@pytest.fixture(scope="module")
def smollm2():
    return loaded(SMOLLM2)


def logits(policy):
    spoken = [{"role": "user", "content": QUESTION}]
    text = policy.tokenizer.apply_chat_template(spoken, tokenize=False, add_generation_prompt=True)
    ids = policy.tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        return policy.model(input_ids=ids).logits


def test_smollm2_answers_a_question(smollm2):
    """Greedily it names Paris and ends its turn itself; it runs as plain numbers."""
    agent = Agent(PolicyModel(smollm2, max_tokens=32), settings=ModelSettings(temperature=0))
    episode = asyncio.run(agent.run(QUESTION)).episode
    assert "Paris" in episode.turns[0].message.text
    assert episode.turns[0].tokens.completion[-1] in smollm2.end_ids
    assert smollm2.tokenizer.eos_token == "<|im_end|>"
    assert smollm2.end_ids == {2}
    assert type(smollm2.model.lm_head) is torch.nn.Linear


def test_smollm2_is_saved_and_loaded_as_it_was(smollm2, tmp_path):
    """269 MB in bf16, with the same logits, end of text and template."""
    save_policy(smollm2, tmp_path / "p")
    assert (tmp_path / "p/model.safetensors").stat().st_size // 1_000_000 == 269
    again = load_policy(tmp_path / "p")
    assert torch.equal(logits(smollm2), logits(again))
    assert again.end_ids == smollm2.end_ids
    assert again.tokenizer.eos_token == "<|im_end|>"
    assert again.tokenizer.chat_template == smollm2.tokenizer.chat_template


def test_an_adapter_of_smollm2_is_saved_alone(smollm2, tmp_path):
    """Some 20 MB of adapters come back onto the same weights, and onto no others."""
    save_policy(smollm2, tmp_path / "p")
    adapted = with_lora(load_policy(tmp_path / "p"), LoraSettings())
    with torch.no_grad():
        for one in adapted.trainable:
            one.add_(0.01)
    save_adapter(adapted, tmp_path / "a")
    size = (tmp_path / "a/adapter_model.safetensors").stat().st_size
    assert 15_000_000 < size < 25_000_000
    again = load_adapter(load_policy(tmp_path / "p"), tmp_path / "a")
    assert torch.equal(logits(adapted), logits(again))
    assert not torch.equal(logits(smollm2), logits(again))
