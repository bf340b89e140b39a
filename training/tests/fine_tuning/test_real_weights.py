"""Fine-tuning of real weights."""

from __future__ import annotations

import asyncio

import pytest

from agentkit.errors import ModelNotFoundError
from agentkit_training import load_policy
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.fine_tuning.examples import make_examples
from agentkit_training.fine_tuning.training import SftSettings, mean_loss, sft
from agentkit_training.toolace.difficulty import gold_answers


@pytest.mark.weights
def test_a_few_steps_lower_the_loss_of_a_real_model(shop):
    """SmolLM2 in bfloat16 knows gold answers better after four steps than before."""
    try:
        policy = load_policy("local:smollm2-135m")
    except ModelNotFoundError as error:
        pytest.skip(f"run `agentkit models install smollm2-135m` first: {error}")
    rows = asyncio.run(make_examples(policy, shop, gold_answers(shop).answers)).rows
    before = mean_loss(policy, rows)
    rate = OptimizerSettings(learning_rate=1e-4)
    report = sft(policy, rows, SftSettings(optimizer=rate, batch_size=3, epochs=4))
    after = mean_loss(policy, rows)
    assert after < before
    assert report.steps[0].loss == pytest.approx(before, rel=0.05)
