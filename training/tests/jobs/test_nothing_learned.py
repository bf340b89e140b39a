"""Both engines tell alike how much of a step had something to teach."""

from __future__ import annotations

from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.jobs.coevolve import coevolve_job

CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 8}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 2, test: 2}
asking: {max_steps: 1, tool_choice: required}
coevolution: {steps: 2, tasks_per_step: 1, group_size: 3}
engine: {optimizer: {learning_rate: 0.001}}
"""


def steps_of(folder, engine, *changes):
    """The share that was skipped in each step, and what was noted."""
    config = parse_config(CONFIG, CoevolveConfig, changes=[f"engine.name={engine}", *changes])
    run = coevolve_job(config, folder / engine)
    return [(one.figures["skipped"], one.notes) for one in run.records() if one.phase == "grpo"]


def test_equal_rewards_are_told_alike(tmp_path):
    """Where no attempt is better than another, all is skipped, and the log says what may help."""
    lean, trl = (steps_of(tmp_path, engine) for engine in ("lean", "trl"))
    assert trl == lean
    assert [skipped for skipped, _ in trl] == [1, 1]
    assert all(notes[-1].startswith("nothing was learned") for _, notes in trl)


def test_a_divergence_alone_is_something_to_learn(tmp_path):
    """With a KL term every sequence has a gradient, however equal the rewards are."""
    change = "engine.objective.kl_coefficient=0.5"
    lean, trl = (steps_of(tmp_path, engine, change) for engine in ("lean", "trl"))
    assert trl == lean
    assert [skipped for skipped, _ in trl] == [0, 0]
    assert not any("nothing was learned" in note for _, notes in trl for note in notes)


def test_a_frozen_policy_has_no_loss(tmp_path):
    """Where the library alone learns, nothing is said of an update that is not made."""
    changes = ["frozen=true", "coevolution.evidence=true"]
    run = coevolve_job(parse_config(CONFIG, CoevolveConfig, changes=changes), tmp_path / "run")
    steps = [one for one in run.records() if one.phase == "coevolve"]
    assert len(steps) == 2
    assert all(one.figures.keys() >= {"reward", "library/version"} for one in steps)
    assert not any(one.figures.keys() & {"loss", "learning_rate", "skipped"} for one in steps)
    assert not any("nothing was learned" in note for one in steps for note in one.notes)
