"""Engines count the same rows as those that had something to teach."""

from __future__ import annotations

import dataclasses

import pytest

from agentkit_training import tiny_policy
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.engine import TrlEngine


def only_the_first_task(rollout):
    """All attempts at the other tasks are worth the same."""
    is_first = rollout.task_id.endswith("-0")
    return rollout if is_first else dataclasses.replace(rollout, reward=1.0)


def speechless(rollout):
    """The first attempt at each task wrote nothing."""
    if rollout.attempt:
        return rollout
    silent = tuple(
        dataclasses.replace(one, written=(False,) * len(one.written)) for one in rollout.sequences
    )
    return dataclasses.replace(rollout, sequences=silent)


@pytest.mark.parametrize("divergence", [0.0, 0.1])
@pytest.mark.parametrize("change", [only_the_first_task, speechless])
def test_rows_with_a_gradient_are_counted_alike(recorded, change, divergence):
    """An advantage or a divergence counts; rows that only fill up a batch do not."""
    told = []
    for engine in (LeanEngine, TrlEngine):
        source = recorded(change=change)
        objective = Objective(kl_coefficient=divergence)
        made = engine(objective=objective, reference=tiny_policy(seed=1), scaled=False)
        made.train(tiny_policy(), source, steps=2)
        told.append([(one.rows, one.read_rows) for one in source.reports])
    assert told[0] == told[1]
    everything = divergence and change is only_the_first_task
    assert all((read == rows) if everything else (0 < read < rows) for rows, read in told[1])
