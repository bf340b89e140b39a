"""Batches: every example once an epoch, loss on answers alone, equal loss however it is laid out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st

from agentkit_training import tiny_policy
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.fine_tuning.training import (
    IGNORED,
    block,
    block_loss,
    mean_loss,
    parts,
    step_orders,
)

POLICY = tiny_policy()
TOKENS = st.lists(st.integers(0, 299), min_size=1, max_size=12).map(tuple)
EXAMPLES = st.lists(
    st.builds(lambda p, c: Example(task_id="t", prompt=p, completion=c), TOKENS, TOKENS),
    min_size=1,
    max_size=6,
)


def alone(example):
    """The sum of ``-log p`` of the completion, by the plain model on the whole row."""
    ids = torch.tensor([[*example.prompt, *example.completion]])
    scores = POLICY.model(input_ids=ids).logits[0, len(example.prompt) - 1 : -1]
    return torch.nn.functional.cross_entropy(
        scores, torch.tensor(example.completion), reduction="sum"
    )


@settings(max_examples=20, deadline=None)
@given(examples=EXAMPLES)
def test_a_block_has_the_loss_of_its_examples_alone(examples):
    """Padding and cut logits change nothing: the loss is that of each example read by itself."""
    with torch.no_grad():
        found = block_loss(POLICY, block(examples, pad=POLICY.pad_id))
        wanted = sum(alone(one) for one in examples)
    assert float(found) == pytest.approx(float(wanted), rel=1e-5)


@given(examples=EXAMPLES)
def test_only_answers_bear_loss(examples):
    """The labels of a row are its completion, and nothing of any prompt."""
    batch = block(examples, pad=POLICY.pad_id)
    for row, one in zip(batch.labels.tolist(), examples, strict=True):
        assert tuple(label for label in row if label != IGNORED) == one.completion
    assert int(batch.mask.sum()) == sum(map(len, examples))


@given(examples=EXAMPLES, bound=st.integers(1, 60))
def test_parts_hold_each_example_once_within_the_bound(examples, bound):
    """A step's parts are its examples, none above the bound unless it is one long example."""
    found = list(parts(examples, input_tokens=bound))
    assert sorted(map(id, (one for part in found for one in part))) == sorted(map(id, examples))
    for part in found:
        assert len(part) == 1 or max(map(len, part)) * len(part) <= bound


@settings(max_examples=10, deadline=None)
@given(examples=EXAMPLES, bound=st.integers(1, 60))
def test_the_bound_does_not_change_the_loss(examples, bound):
    """However small the parts are, the mean is over all tokens that bear loss."""
    whole = mean_loss(POLICY, examples)
    assert mean_loss(POLICY, examples, input_tokens=bound) == pytest.approx(whole, rel=1e-5)


@given(
    count=st.integers(1, 40),
    batch_size=st.integers(1, 9),
    epochs=st.integers(1, 3),
    seed=st.integers(0, 3),
)
def test_each_epoch_sees_each_example_once(count, batch_size, epochs, seed):
    """Orders are drawn from the seed, one for each epoch."""
    orders = step_orders(count, batch_size=batch_size, epochs=epochs, seed=seed)
    steps = -(-count // batch_size)
    assert len(orders) == epochs * steps
    for epoch in range(epochs):
        seen = [one for step in orders[epoch * steps : (epoch + 1) * steps] for one in step]
        assert sorted(seen) == list(range(count))
    assert orders == step_orders(count, batch_size=batch_size, epochs=epochs, seed=seed)
