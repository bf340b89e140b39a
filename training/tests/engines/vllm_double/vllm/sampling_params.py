"""How an answer is sampled: the fields that TRL sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class SamplingParams:
    n: int
    repetition_penalty: float
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    max_tokens: int
    logprobs: int
    stop_token_ids: tuple[int, ...] = ()

    def __post_init__(self):
        assert self.n == 1
        assert self.logprobs == 0


@dataclass
class StructuredOutputsParams:
    regex: str | None = None
