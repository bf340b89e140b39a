"""Drawing tokens: exact inverses of the cumulated probabilities, whatever the vocabulary."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from hypothesis import assume, given, settings, strategies as st

from agentkit_training.generation.decoding import draw, inverted, nucleus

MASSES = st.lists(st.integers(0, 50), min_size=1, max_size=700).filter(any)
DRAWS = st.floats(0, 1, exclude_max=True)


def number(*values):
    return torch.tensor(values, dtype=torch.float64)


def exact(masses, draw):
    """The inverse of the cumulated masses, in rational numbers."""
    target = Fraction(draw) * sum(masses)
    cumulated = 0
    for token, mass in enumerate(masses):
        cumulated += mass
        if cumulated > target:
            return token
    raise AssertionError("the draw is below 1")


@settings(deadline=None)
@given(masses=MASSES, draw=DRAWS)
def test_a_token_is_drawn_as_exact_numbers_say(masses, draw):
    """A draw u takes the first token whose cumulated probability is more than u."""
    target = Fraction(draw) * sum(masses)
    assume(abs(target - round(target)) > Fraction(1, 10**9) or target == round(target))
    found = inverted(torch.tensor([masses], dtype=torch.float32), number(draw))
    assert int(found) == exact(masses, draw)


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 2000), seed=st.integers(0, 9))
def test_the_largest_draw_finds_the_last_possible_token(size, seed):
    """However probabilities are rounded, a token is in range and never one of probability 0."""
    probabilities = torch.rand(3, size, generator=torch.Generator().manual_seed(seed))
    probabilities[:, size // 2 + 1 :] = 0
    found = inverted(probabilities, number(*[1 - 2**-53] * 3))
    assert (found <= size // 2).all()
    assert (probabilities.gather(1, found[:, None]) > 0).all()


@settings(max_examples=40, deadline=None)
@given(masses=MASSES, top_p=st.floats(0.01, 1))
def test_the_nucleus_is_the_smallest_that_reaches_its_mass(masses, top_p):
    """The tokens kept reach the mass, without the least likely of them they do not."""
    probabilities = torch.tensor([masses], dtype=torch.float64)
    probabilities /= probabilities.sum()
    kept = nucleus(probabilities, number(top_p))[0]
    chosen = kept[kept > 0]
    assert len(chosen) >= 1
    assert chosen.sum() >= min(top_p, 1.0) - 1e-9
    assert chosen.sum() - chosen.min() < top_p + 1e-9
    left = probabilities[0][kept == 0]
    assert not len(left) or left.max() <= chosen.min()


@pytest.mark.parametrize("top_p", [1.0, 0.5])
def test_log_probabilities_are_those_of_the_whole_distribution(top_p):
    """Neither the nucleus nor greedy choice changes what is recorded; temperature does."""
    logits = torch.tensor([[2.0, 1.0, 0.0]] * 3)
    temperatures = torch.tensor([1.0, 2.0, 0.0])
    tokens, logprobs = draw(
        logits,
        temperatures=temperatures,
        top_ps=number(top_p, top_p, top_p),
        draws=number(0.1, 0.1, 0.99),
    )
    assert tokens.tolist() == [0, 0, 0]
    wanted = [torch.log_softmax(logits[0] / heat, -1)[0] for heat in (1.0, 2.0, 1.0)]
    assert torch.allclose(logprobs, torch.stack(wanted))


def test_logits_in_bf16_are_drawn_from_in_float32():
    """Half-precision logits give float32 log-probabilities that sum to one."""
    logits = torch.randn(1, 500, generator=torch.Generator().manual_seed(1)).bfloat16()
    _, logprobs = draw(logits, temperatures=torch.ones(1), top_ps=None, draws=number(0.3))
    assert logprobs.dtype == torch.float32
