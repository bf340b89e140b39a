"""verl itself with what was exported: its configuration, its data, its workers, its trainer.

verl can not be installed beside current transformers; ``make test-verl`` runs this where it is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentkit_training import tiny_policy
from agentkit_training.jobs.verl import VerlRun, export_verl
from agentkit_training.policy.saving import save_policy

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("verl") is None,
        reason="verl has an environment of its own; make test-verl builds it and runs this",
    ),
    pytest.mark.filterwarnings("ignore"),  # verl warns of every engine that is not installed
]

CLUSTER = Path(__file__).with_name("cluster.py")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model that verl can load, and an export with a library in a store."""
    from agentkit_training.engines.verl.workspace import VerlSettings
    from agentkit_training.tasks.loading import TaskSpec

    place = tmp_path_factory.mktemp("verl")
    save_policy(tiny_policy(), place / "model")
    settings = VerlSettings(
        tasks=TaskSpec(source="hidden-constraints", train=4, validation=2, test=2),
        library=f"sqlite:///{place}/library.db",
        weights="fixed",
        keeps_episodes=True,
    )
    run = VerlRun(
        model=str(place / "model"),
        batch_size=4,
        attempts=2,
        prompt_tokens=300,
        response_tokens=40,
    )
    return settings, export_verl(settings, place / "run", run)


@pytest.fixture(scope="module")
def told(exported):
    """What a small cluster says of one step."""
    settings, export = exported
    done = subprocess.run(
        [sys.executable, str(CLUSTER), str(export.folder), settings.library],
        env={**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_workers_make_every_rollout_that_can_be_made(told):
    """Verl's workers find the loop by the exported file, for the first rollout and all after it.

    What an error ends is a failure for verl. A prompt that is too long is left out in silence: its
    group is finished, without rows.
    """
    assert told["status"] == ["failure", "finished", "finished", "finished"]
    assert len(told["keys"]) == 4
    assert len({note["task_id"] for note in told["notes"]}) == 2
    assert max(len(prompt) for prompt in told["prompts"]) <= 300


def test_rows_are_what_the_policy_read_and_wrote(told):
    """Prompts hold the library's tools, responses are tokens of the server, all of them written."""
    tokenizer = tiny_policy().tokenizer
    for prompt, response, mask in zip(
        told["prompts"], told["responses"], told["masks"], strict=True
    ):
        assert "function calling assistant" in tokenizer.decode(prompt)
        assert 1 <= len(response) == sum(mask) <= 40


def test_a_step_is_asked_with_the_version_that_the_trainer_saw(told):
    """A version that is committed after the batch was handed out waits for the next one."""
    assert told["newest"] == 2
    assert {note["library_version"] for note in told["notes"]} == {1}
    assert told["metrics"]["agentkit/library_version"] == 1


def test_advantages_bear_the_weights_of_their_rollouts(told):
    """Each is verl's own advantage times the weight that the loop noted (SEAL, Eq. 12)."""
    assert any(abs(one) > 0.1 for row in told["before"] for one in row)
    for before, after, note in zip(told["before"], told["after"], told["notes"], strict=True):
        assert note["weight"] != 1
        assert after == pytest.approx([one * note["weight"] for one in before], rel=1e-5)


def test_the_trainer_is_ours_and_works_as_the_synchronous_one(told):
    """Verl finds it by the name in the configuration, and sees the mode that it knows."""
    assert told["trainer"] == "agentkit_training.engines.verl.trainer.AgentkitTrainer"
    assert told["mode"] == "sync"


def test_workers_keep_their_episodes(told, exported):
    """Whoever holds the Tool Manager finds all of them in the store, diagnosed."""
    from agentkit import open_store

    settings, _ = exported
    store = open_store(settings.library)
    episodes = list(store.select())
    store.close()
    assert len(episodes) == 6  # also those of the prompt that verl takes for too long
    assert all(one.diagnosis is not None for one in episodes)


def test_reward_managers_find_the_reward_function(exported):
    """Verl loads ``compute_score`` by what the configuration says, and calls it by its names."""
    from hydra import compose, initialize_config_dir
    from verl.trainer.ppo.reward import get_custom_reward_fn

    _, export = exported
    with initialize_config_dir(str(export.folder), version_base=None):
        config = compose("verl")
    score = get_custom_reward_fn(config)
    extra = {"reward": 0.25, "reward_parts": {}}
    found = score(data_source="d", solution_str="", ground_truth="", extra_info=extra)
    assert found == {"score": 0.25}


@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "dr_grpo"])
def test_verl_takes_the_configuration_of_a_run(exported, tmp_path, loss_type):
    """What ``agentkit-train verl`` makes of a file passes verl's own checks, key by key."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    from agentkit_training.config.jobs import CoevolveConfig
    from agentkit_training.config.reading import parse_config
    from agentkit_training.jobs.verl import verl_job

    _, export = exported
    text = f"""\
policy: {{weights: {export.folder.parent / "model"}}}
tasks: {{source: hidden-constraints, train: 4, validation: 2}}
coevolution: {{steps: 5, tasks_per_step: 2, group_size: 4}}
engine: {{objective: {{loss_type: {loss_type}, kl_coefficient: 0.01}}, max_tokens: 8192}}
hardware: {{machines: 2, devices: 4}}
"""
    folder = verl_job(parse_config(text, CoevolveConfig), tmp_path / "out").folder
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("verl")
    OmegaConf.resolve(config)
    validate_config(config, use_reference_policy=True, use_critic=False)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    assert actor.ppo_mini_batch_size == 2
    assert actor.ppo_max_token_len_per_gpu == 8192
    assert actor.optim.lr_scheduler_type == "constant"
    assert config.trainer.total_training_steps == 5
