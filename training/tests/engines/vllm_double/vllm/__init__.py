"""A double of the few names of vLLM that TRL touches, so that TRL's own code runs on a CPU.

It loads a model with transformers, takes over weights by their names and samples token by token.
Like vLLM it may find tokens a little more or less likely than the trainer does
(``VLLM_DOUBLE_SHARPENED``). It knows nothing of vLLM's engine: what it shows is what TRL and the
writer do.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import ClassVar

import torch

from vllm.sampling_params import SamplingParams

__version__ = "0.24.0"
__all__ = ["LLM", "RequestOutput", "SamplingParams"]


@dataclass
class Logprob:
    logprob: float
    rank: int = 1


@dataclass
class CompletionOutput:
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[dict[int, Logprob]] = field(default_factory=list)


@dataclass
class RequestOutput:
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]


class Weights:
    """What TRL hands weights to; an unknown name is an error, as with vLLM."""

    def __init__(self, model):
        self.model = model
        self.loaded = []

    def load_weights(self, named):
        own = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, weight in named:
                assert type(weight) is torch.Tensor or isinstance(weight, torch.nn.Parameter)
                own[name].copy_(weight)
                self.loaded.append(name)


class LLM:
    """One engine, with a model of its own."""

    made: ClassVar[list[LLM]] = []

    def __init__(self, model, *, seed, max_num_seqs, logprobs_mode, **_):
        from transformers import AutoModelForCausalLM
        from transformers.integrations import unset_hf_deepspeed_config

        unset_hf_deepspeed_config()  # vLLM does not load through transformers, which would split it
        assert logprobs_mode == "processed_logprobs"
        self.model = AutoModelForCausalLM.from_pretrained(model).eval()
        self.asked = []
        self.resets = 0
        self.max_num_seqs = max_num_seqs
        self.weights = Weights(self.model)
        self._dice = torch.Generator().manual_seed(seed)
        self._sharpened = float(os.environ.get("VLLM_DOUBLE_SHARPENED", "1"))
        runner = SimpleNamespace(model=self.weights)
        worker = SimpleNamespace(model_runner=runner)
        self.llm_engine = SimpleNamespace(model_executor=SimpleNamespace(driver_worker=worker))
        LLM.made.append(self)

    def generate(self, prompts, *, sampling_params, use_tqdm):
        assert use_tqdm is False
        self.asked.append(len(prompts))
        return [self._answered(one["prompt_token_ids"], sampling_params) for one in prompts]

    def reset_prefix_cache(self):
        self.resets += 1

    def _answered(self, prompt, wanted):
        output, ids = CompletionOutput(), list(prompt)
        while len(output.token_ids) < wanted.max_tokens:
            token, logprob = self._drawn(ids, wanted.temperature)
            ids.append(token)
            output.token_ids.append(token)
            output.logprobs.append({token: Logprob(logprob)})
            if token in wanted.stop_token_ids:
                break
        return RequestOutput(prompt_token_ids=list(prompt), outputs=[output])

    @torch.inference_mode()
    def _drawn(self, ids, temperature):
        logits = self.model(input_ids=torch.tensor([ids])).logits[0, -1].float() * self._sharpened
        likely = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
        if temperature == 0:
            token = int(likely.argmax())
        else:
            token = int(torch.multinomial(likely.exp(), 1, generator=self._dice))
        return token, float(likely[token])
