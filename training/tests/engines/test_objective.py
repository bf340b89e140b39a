"""The loss of a token, and what its share of the batch is."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st

from agentkit_training.engines.objective import (
    BatchSize,
    Objective,
    divergences,
    is_clipped,
    token_losses,
    token_share,
)

LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=12)
LOGPROB = st.floats(-8, -0.01)
ADVANTAGE = st.floats(-3, 3)
BOUND = st.floats(0.05, 0.5)


@given(new=LOGPROB, old=LOGPROB, advantage=ADVANTAGE, low=BOUND, high=BOUND)
def test_the_clipped_loss_is_that_of_ppo(new, old, advantage, low, high):
    """The loss is -min(rho A, clip(rho) A) (ToolDNA, Eq. 1), in other words -rho A until bounded."""
    objective = Objective(clip_low=low, clip_high=high)
    now, was = torch.tensor([new], dtype=torch.float64), torch.tensor([old], dtype=torch.float64)
    gain = torch.tensor([advantage], dtype=torch.float64)
    found = token_losses(now, old=was, advantages=gain, reference=None, objective=objective)
    ratio = float(torch.exp(now - was))
    bound = max(ratio, 1 - low) if advantage < 0 else min(ratio, 1 + high)
    assert float(found) == pytest.approx(-bound * advantage)


@given(new=LOGPROB, old=LOGPROB, advantage=ADVANTAGE.filter(lambda one: abs(one) > 1e-3))
def test_a_clipped_token_has_no_gradient(new, old, advantage):
    """Tokens told as clipped are those whose loss does not depend on the weights."""
    objective = Objective()
    now = torch.tensor([new], dtype=torch.float64, requires_grad=True)
    was, gain = torch.tensor([old], dtype=torch.float64), torch.tensor([advantage])
    token_losses(
        now, old=was, advantages=gain, reference=None, objective=objective
    ).sum().backward()
    told = bool(is_clipped(now.detach(), old=was, advantages=gain, objective=objective))
    assert told == (float(now.grad) == 0)


@given(new=LOGPROB, reference=LOGPROB)
def test_the_divergence_is_never_negative(new, reference):
    """Schulman's estimate is 0 for equal log-probabilities and positive for all others."""
    found = divergences(torch.tensor([new]), torch.tensor([reference]))
    assert float(found) >= 0
    assert float(divergences(torch.tensor([new]), torch.tensor([new]))) == 0


def test_the_divergence_is_that_of_the_distributions_in_the_mean():
    """Over tokens of the policy the estimate's mean is KL(policy || reference)."""
    ours = torch.log_softmax(torch.tensor([0.3, -1.0, 2.0]), -1)
    theirs = torch.log_softmax(torch.tensor([1.0, 0.5, 0.0]), -1)
    mean = (ours.exp() * divergences(ours, theirs)).sum()
    assert float(mean) == pytest.approx(float((ours.exp() * (ours - theirs)).sum()), rel=1e-5)


@given(outputs=st.lists(LENGTHS, min_size=1, max_size=8))
def test_shares_make_the_means_that_their_names_say(outputs):
    """grpo: each output counts alike; dapo and bnpo: each token; dr_grpo: a constant."""
    tokens = sum(map(sum, outputs))
    size = BatchSize(outputs=len(outputs), tokens=tokens)

    def sums(loss_type):
        objective = Objective(loss_type=loss_type)
        return [
            sum(
                one * token_share(one, one / sum(lengths), size=size, objective=objective)
                for one in lengths
            )
            for lengths in outputs
        ]

    count = len(outputs)
    assert sums("grpo") == pytest.approx([1 / count] * count)
    assert sums("dapo") == sums("bnpo") == pytest.approx([sum(one) / tokens for one in outputs])
    assert sums("dr_grpo") == pytest.approx([sum(one) / (256 * count) for one in outputs])


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dapo", "dr_grpo"])
def test_empty_batches_divide_nothing_by_zero(loss_type):
    """No outputs, or none with tokens, have shares all the same."""
    objective = Objective(loss_type=loss_type)
    for outputs in (0.0, 2.0):
        size = BatchSize(outputs=outputs, tokens=0)
        assert 0 <= token_share(0, 0.5, size=size, objective=objective) <= 1
