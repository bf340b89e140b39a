"""Configurations whose parts do not fit together are refused before anything is loaded."""

from __future__ import annotations

import pytest

from agentkit.errors import UsageError
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config

PLAIN = """\
policy:
  weights: tiny
tasks:
  source: hidden-constraints
"""


def read(*changes):
    """The configuration with some changes."""
    return parse_config(PLAIN, CoevolveConfig, changes=list(changes))


def test_one_temperature_is_sampled_and_trained_at():
    """Another one in the objective would train on probabilities that nothing was sampled by."""
    with pytest.raises(UsageError, match=r"coevolution.temperature is 0.7 and .* 1; give both"):
        read("coevolution.temperature=0.7")
    both = read("coevolution.temperature=0.7", "engine.objective.temperature=0.7")
    assert both.coevolution.temperature == both.engine.objective.temperature == 0.7
    assert read("coevolution.temperature=0.7", "frozen=true").frozen


def test_grpo_compares_attempts_at_a_task():
    """One attempt has nothing to be compared with; a frozen policy may make one."""
    with pytest.raises(UsageError, match=r"coevolution\.group_size is 1"):
        read("coevolution.group_size=1")
    assert read("coevolution.group_size=1", "frozen=true").frozen
    assert read("coevolution.group_size=1", "coevolution.steps=0").coevolution.steps == 0


def test_a_teacher_is_for_composites():
    """A model that nobody would ask is a mistake in the file."""
    with pytest.raises(UsageError, match=r"coevolution\.composites is off"):
        read("teacher=local:smollm2-135m")
    assert read("teacher=local:smollm2-135m", "coevolution.composites=true").teacher
