"""Many answers at once: each as if it were written alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st

from agentkit_training import TokenSequence, tiny_policy
from agentkit_training.engines.scoring import token_logprobs
from agentkit_training.errors import PolicyError
from agentkit_training.generation.decoding import Prompt, complete

POLICY = tiny_policy()
TALKATIVE = replace(POLICY, end_ids=POLICY.end_ids | set(range(300, 340)))  # ends after some 10
TOKENS = st.integers(3, 390)
PROMPT = st.lists(TOKENS, min_size=1, max_size=20).map(tuple)


@st.composite
def batches(draw):
    """Prompts with common beginnings and different settings."""
    beginning = draw(st.lists(TOKENS, max_size=25))
    one = st.builds(
        Prompt,
        ids=PROMPT.map(lambda rest: (*beginning, *rest)),
        max_tokens=st.integers(0, 12),
        temperature=st.sampled_from([0.0, 0.7, 1.0]),
        top_p=st.sampled_from([0.9, 1.0]),
        seed=st.integers(0, 3),
    )
    return draw(st.lists(one, min_size=1, max_size=6))


@settings(max_examples=12, deadline=None)
@given(prompts=batches())
def test_an_answer_does_not_depend_on_those_beside_it(prompts):
    """In any batch a prompt is answered as alone: the same tokens, log-probabilities to 1e-5."""
    for prompt, beside in zip(prompts, complete(TALKATIVE, prompts), strict=True):
        (alone,) = complete(TALKATIVE, [prompt])
        assert beside.ids == alone.ids
        assert beside.is_ended == alone.is_ended
        assert beside.logprobs == pytest.approx(alone.logprobs, abs=1e-5)


@settings(max_examples=15, deadline=None)
@given(prompts=batches())
def test_training_reads_what_was_written(prompts):
    """Log-probabilities of sampling and of training agree to 1e-5 in float32."""
    sampled = [replace(prompt, temperature=1.0) for prompt in prompts]
    sequences = [
        TokenSequence(
            prompt=prompt.ids,
            completion=one.ids,
            written=(True,) * len(one.ids),
            logprobs=one.logprobs,
        )
        for prompt, one in zip(sampled, complete(TALKATIVE, sampled), strict=True)
    ]
    for one, read in zip(sequences, token_logprobs(TALKATIVE, sequences), strict=True):
        assert read.tolist() == pytest.approx(one.logprobs, abs=1e-5)


def test_an_answer_is_the_one_that_its_random_numbers_choose():
    """Each token inverts the plain model's distribution at the next number of the row's stream."""
    prompt = Prompt(ids=(5, 6, 7), max_tokens=10, seed=3)
    (found,) = complete(POLICY, [prompt])
    generator = torch.Generator().manual_seed(3)
    draws = torch.rand(10, generator=generator, dtype=torch.float64)
    ids = list(prompt.ids)
    for wanted, draw in zip(found.ids, draws, strict=False):
        with torch.no_grad():
            logits = POLICY.model(input_ids=torch.tensor([ids])).logits[0, -1]
        cumulated = torch.softmax(logits.double(), -1).cumsum(0)
        assert wanted == int(torch.searchsorted(cumulated, draw, right=True))
        ids.append(wanted)


def test_greedy_answers_take_the_likeliest_token():
    """At temperature 0 the answer is that of greedy decoding, whatever the seed."""
    prompts = [Prompt(ids=(5, 6, 7), max_tokens=8, temperature=0, seed=seed) for seed in (1, 2)]
    first, second = complete(POLICY, prompts)
    assert first == second
    ids = torch.tensor([[5, 6, 7]])
    wanted = POLICY.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False
    )
    assert first.ids == tuple(wanted[0, 3:].tolist())


def test_an_end_token_ends_an_answer():
    """The end token is the last one of an answer that ended, and stands nowhere else."""
    prompts = [Prompt(ids=(5, 6), max_tokens=60, seed=seed) for seed in range(16)]
    found = complete(TALKATIVE, prompts)
    assert any(one.is_ended for one in found)
    for one in found:
        assert not TALKATIVE.end_ids & set(one.ids[:-1])
        assert one.is_ended == (one.ids[-1] in TALKATIVE.end_ids)
        assert len(one.ids) == 60 or one.is_ended
        assert len(one.ids) == len(one.logprobs)


def test_seeds_tell_answers_apart():
    """Equal seeds give equal answers, and other seeds others."""
    prompts = [Prompt(ids=(5, 6), max_tokens=12, seed=seed) for seed in (1, 1, 2)]
    first, again, other = complete(POLICY, prompts)
    assert first == again
    assert first.ids != other.ids


def test_weights_that_give_no_probabilities_are_told():
    """A policy that has diverged is an error that says so, and no answer."""
    policy = tiny_policy()
    with torch.no_grad():
        policy.model.lm_head.weight.fill_(float("nan"))
    for temperature in (0.0, 1.0):
        asked = [Prompt(ids=(5, 6), max_tokens=3, temperature=temperature)]
        with pytest.raises(PolicyError, match=r"tiny gives no probabilities.*lower learning rate"):
            complete(policy, asked)
