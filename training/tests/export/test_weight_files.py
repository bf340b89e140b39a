"""The whole of a tuned policy as a GGUF file."""

from __future__ import annotations

import asyncio

import pytest
import torch

from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest
from agentkit_training import tiny_policy
from agentkit_training.errors import ExportError
from agentkit_training.export.weights import weights_to_gguf

TOLERANCES = {"f32": 2e-3, "f16": 4e-3, "bf16": 2e-2, "q8_0": 4e-2}


@pytest.fixture
def tuned(policy, tiny_gguf):
    """The policy after every weight was changed; its base weights lie in ``tiny_gguf``."""
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=draw) * 0.1)
    return policy


@pytest.mark.parametrize("precision", TOLERANCES)
def test_llama_cpp_computes_what_the_policy_does(
    tuned,
    tiny_gguf,
    prompts,
    next_tokens_of_file,
    next_tokens_of_policy,
    farthest,
    tmp_path,
    precision,
):
    """Log-probabilities are as near as the precision of the file allows."""
    file = weights_to_gguf(tuned, tmp_path / "tuned.gguf", like=tiny_gguf, precision=precision)
    got = next_tokens_of_file(file, prompts)
    assert farthest(got, next_tokens_of_policy(tuned, prompts)) < TOLERANCES[precision]


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
    file = weights_to_gguf(trained, tmp_path / "merged.gguf", like=tiny_gguf, precision="f32")
    got = next_tokens_of_file(file, prompts)
    assert farthest(got, next_tokens_of_policy(trained, prompts)) < 3e-3


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
