"""Packed sequences: each completion is read as if it stood alone."""

from __future__ import annotations

import torch
from hypothesis import given, settings, strategies as st

from agentkit_training import TokenSequence, tiny_policy
from agentkit_training.engines.packing import packed_logprobs, packs

POLICY = tiny_policy()
TOKENS = st.integers(0, 400)


def sequence(prompt, completion):
    return TokenSequence(
        prompt=tuple(prompt),
        completion=tuple(completion),
        written=(True,) * len(completion),
        logprobs=(0.0,) * len(completion),
    )


def alone(prompt, completion):
    """The log-probabilities as the plain model computes them, one sequence at a time."""
    ids = torch.tensor([[*prompt, *completion]])
    logits = POLICY.model(input_ids=ids).logits[0, len(prompt) - 1 : -1].float()
    return torch.log_softmax(logits, -1).gather(1, ids[0, len(prompt) :, None])[:, 0]


@settings(max_examples=20, deadline=None)
@given(
    prompt=st.lists(TOKENS, min_size=1, max_size=12),
    completions=st.lists(st.lists(TOKENS, min_size=1, max_size=9), min_size=1, max_size=5),
)
def test_a_pack_is_read_as_its_parts_alone(prompt, completions):
    """Log-probabilities of a pack equal those of its sequences read one by one."""
    sequences = [sequence(prompt, one) for one in completions]
    with torch.no_grad():
        for places, pack in packs(sequences, max_tokens=10_000):
            found = packed_logprobs(POLICY, pack)
            wanted = torch.cat([alone(prompt, completions[place]) for place in places])
            assert torch.allclose(found, wanted, atol=1e-5)


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    prompts=st.integers(1, 3),
    limit=st.integers(4, 40),
)
def test_packs_hold_every_sequence_once(lengths, prompts, limit):
    """Each sequence is in one pack, beside others of its prompt, within the limit if possible."""
    sequences = [sequence([n % prompts] * 3, [5] * length) for n, length in enumerate(lengths)]
    seen = []
    for places, pack in packs(sequences, max_tokens=limit):
        seen += places
        assert {sequences[place].prompt for place in places} == {pack.prompt}
        assert len(pack) <= limit or len(places) == 1
    assert sorted(seen) == list(range(len(lengths)))
