"""The loss of a token, and what its share of the batch is."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentkit_training.engines.objective import (
    Objective,
    divergences,
    is_clipped,
    token_losses,
    token_shares,
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


@given(lengths=LENGTHS)
def test_shares_make_the_means_that_their_names_say(lengths):
    """grpo: each sequence counts alike; dapo and bnpo: each token; dr_grpo: a constant."""

    def sums(loss_type):
        shares = token_shares(lengths, objective=Objective(loss_type=loss_type))
        return [share * length for share, length in zip(shares, lengths, strict=True)]

    rows, tokens = len(lengths), sum(lengths)
    assert sums("grpo") == pytest.approx([1 / rows] * rows)
    assert sums("dapo") == sums("bnpo") == pytest.approx([one / tokens for one in lengths])
    assert sums("dr_grpo") == pytest.approx([one / (256 * rows) for one in lengths])
    assert sum(sums("grpo")) == pytest.approx(1)
    assert sum(sums("dapo")) == pytest.approx(1)


def test_empty_batches_have_no_shares():
    """No sequences, or none with tokens, divide nothing by zero."""
    for loss_type in ("grpo", "bnpo", "dapo", "dr_grpo"):
        objective = Objective(loss_type=loss_type)
        assert token_shares([], objective=objective) == []
        assert all(0 <= share <= 1 for share in token_shares([0, 0], objective=objective))
