"""Calls that are refined before they run: every proposal is kept, token for token."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import compress

import pytest

from agentkit.evaluation import EvaluationSettings
from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.generation.decoding import Completion


def _call(item):
    return json.dumps({"calls": [{"name": "get_price", "arguments": {"item": item}}]})


@dataclass(kw_only=True)
class Dictated:
    """Writes given texts, one after another."""

    tokenizer: object
    texts: list[str]

    async def write(self, prompts):
        """The next text, whatever is asked."""
        assert len(prompts) == 1
        ids = self.tokenizer.encode(self.texts.pop(0), add_special_tokens=False)
        ids = (*ids, self.tokenizer.eos_token_id)
        return [Completion(ids=ids, logprobs=(-1.0,) * len(ids), is_ended=True)]


@pytest.fixture
def refined(shop):
    """Lets a policy write given texts, and gives the rollout of one question."""

    async def collected(*texts):
        policy = tiny_policy(["apple bread cheese get_price", *texts])
        writer = Dictated(tokenizer=policy.tokenizer, texts=list(texts))
        (rollout,) = await collect(
            PolicyModel(policy, writer=writer, max_tokens=64),
            replace(shop, tasks=shop.tasks[:1]),
            attempts=1,
            settings=EvaluationSettings(refine="adaptive", max_steps=2),
        )
        return policy.tokenizer, rollout

    return collected


def _said(tokenizer, ids):
    return tokenizer.decode(list(ids), skip_special_tokens=True)


async def test_all_proposals_are_trained_on(refined):
    """The direct answer, each round and the answer after the result bear loss, each once."""
    texts = [_call("bread"), _call("apple"), _call("apple"), '{"answer": "3"}']
    tokenizer, rollout = await refined(*texts)
    written = [_said(tokenizer, compress(one.completion, one.written)) for one in rollout.sequences]
    assert "".join(written) == "".join(texts)
    bears = [one for sequence in rollout.sequences for one in sequence.written]
    logprobs = [one for sequence in rollout.sequences for one in sequence.logprobs]
    assert logprobs == [-1.0 if one else 0.0 for one in bears]


async def test_the_next_prompt_has_the_calls_that_were_run(refined):
    """What the policy reads behind a result is the refined call, not the one that it gave up."""
    texts = [_call("bread"), _call("apple"), _call("apple"), '{"answer": "3"}']
    tokenizer, rollout = await refined(*texts)
    prompt = _said(tokenizer, rollout.sequences[-1].prompt)
    assert '"item": "apple"' in prompt
    assert '"item": "bread"' not in prompt
