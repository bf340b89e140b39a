"""``agentkit-train verl`` writes what verl is started with, from the file of a run."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from agentkit import open_store
from agentkit_training import tiny_policy
from agentkit_training.cli.main import main
from agentkit_training.policy.saving import save_policy

CONFIG = """\
policy: {weights: WEIGHTS, answer_tokens: 6}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 2, test: 2}
reward: R2
coevolution: {steps: 5, tasks_per_step: 2, group_size: 4, weighting: true}
engine: {optimizer: {learning_rate: 1.0e-6}, objective: {loss_type: grpo, kl_coefficient: 0.01}}
hardware: {machines: 2, devices: 4}
verl: {prompt_tokens: 300, response_tokens: 40}
"""


@pytest.fixture
def config(tmp_path):
    save_policy(tiny_policy(), tmp_path / "weights")
    path = tmp_path / "run.yaml"
    path.write_text(CONFIG.replace("WEIGHTS", str(tmp_path / "weights")))
    return path


def written(config, folder, *changes):
    more = [one for change in changes for one in ("--set", change)]
    return CliRunner().invoke(main, ["verl", str(config), "--output", str(folder), *more])


def test_the_command_that_starts_verl_is_printed_last(config, tmp_path):
    """The line on stdout names the folder and the configuration in it."""
    done = written(config, tmp_path / "out")
    assert done.exit_code == 0, done.output
    folder = f"--config-dir {tmp_path / 'out'}"
    assert done.stdout == f"python -m verl.trainer.main_ppo {folder} --config-name verl\n"
    assert "4 train" in done.stderr


def test_objective_and_optimiser_are_those_of_the_file(config, tmp_path):
    """What an engine of ours would do is said in verl's words."""
    written(config, tmp_path / "out", "policy.lora={rank: 4}")
    told = yaml.safe_load((tmp_path / "out" / "verl.yaml").read_text())
    policy = told["actor_rollout_ref"]
    actor = policy["actor"]
    assert actor["optim"]["lr"] == 1e-6
    assert actor["loss_agg_mode"] == "seq-mean-token-mean"
    assert (actor["use_kl_loss"], actor["kl_loss_coef"]) == (True, 0.01)
    assert policy["model"]["lora_rank"] == 4
    assert policy["rollout"]["n"] == 4
    assert (told["trainer"]["nnodes"], told["trainer"]["n_gpus_per_node"]) == (2, 4)
    assert told["trainer"]["total_training_steps"] == 5
    settings = yaml.safe_load((tmp_path / "out" / "agentkit.yaml").read_text())
    assert (settings["weights"], settings["answer_tokens"]) == ("normalised", 6)


def test_a_store_gets_the_tasks_tools(config, tmp_path):
    """With a store for the library, its first version is there before a worker asks."""
    url = f"sqlite:///{tmp_path}/library.db"
    done = written(config, tmp_path / "out", f"verl.library={url}", "verl.keeps_episodes=true")
    assert "version 1 of the library" in done.stderr
    store = open_store(url)
    assert len(list(store.load())) > 1
    store.close()


def test_all_that_does_not_run_in_verl_is_named(config, tmp_path):
    """Each switch is told with what to do instead, and nothing is written."""
    changes = (
        "coevolution.evidence=true",
        "coevolution.interface=true",
        "weighting.kind=dynamic",
        "policy.weights=local:smollm2-135m",
        "cold_start={batch_size: 4}",
        "hardware.devices=3",
    )
    done = written(config, tmp_path / "out", *changes)
    assert done.exit_code == 2
    for words in ("evidence", "interface", "weighting.kind", "policy.weights", "cold_start"):
        assert words in done.stderr
    assert "agentkit evolve" in done.stderr
    assert "8 rollouts a step" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("engine.optimizer.schedule=linear", "constant or cosine"),
        ("coevolution.tasks_per_step=32", "4 tasks to train on"),
        ("verl.keeps_episodes=true", "names no store"),
        ("engine.mini_batches=2", "mini_batches: a step is one update"),
    ],
)
def test_what_verl_would_stumble_over_is_told_before(config, tmp_path, change, words):
    """A schedule that it lacks, steps that are never full, episodes without a place."""
    done = written(config, tmp_path / "out", change)
    assert done.exit_code == 2
    assert words in done.stderr


def test_neither_torch_nor_verl_is_loaded(config, tmp_path):
    """The folder is written where neither is installed."""
    program = (
        "import sys\n"
        "from agentkit_training.cli.main import main\n"
        f"main(['verl', {str(config)!r}, '--output', {str(tmp_path / 'out')!r}], "
        "standalone_mode=False)\n"
        "print(sorted({'torch', 'transformers', 'verl', 'ray'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
