"""verl: the folder that it is started with, and the rollouts that our agent makes for it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import pytest
import yaml
from click.testing import CliRunner

from agentkit_training import tiny_policy
from agentkit_training.cli.main import main
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.engines.verl.export import export_verl
from agentkit_training.errors import ExportError
from agentkit_training.generation.decoding import Prompt, complete
from agentkit_training.policy.saving import save_policy

CONFIG = """\
policy: {weights: WEIGHTS, answer_tokens: 6}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 2, test: 2}
asking: {max_steps: 1, tool_choice: required}
reward: R2
coevolution: {steps: 5, tasks_per_step: 2, group_size: 4}
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
    """The line on stdout names the folder; it holds rows and YAML, nothing that runs."""
    done = written(config, tmp_path / "out")
    assert done.exit_code == 0, done.output
    folder = f"--config-dir {tmp_path / 'out'}"
    assert done.stdout == f"python -m verl.trainer.main_ppo {folder} --config-name verl\n"
    assert "4 train" in done.stderr
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".parquet", ".yaml"}


def test_objective_and_optimiser_are_those_of_the_file(config, tmp_path):
    """What an engine of ours would do is said in verl's words, and the files name each other."""
    out = tmp_path / "out"
    written(config, out, "policy.lora={rank: 4}")
    told = yaml.safe_load((out / "verl.yaml").read_text())
    policy, trainer = told["actor_rollout_ref"], told["trainer"]
    actor, rollout = policy["actor"], policy["rollout"]
    assert actor["optim"]["lr"] == 1e-6
    assert actor["loss_agg_mode"] == "seq-mean-token-mean"
    assert (actor["use_kl_loss"], actor["kl_loss_coef"]) == (True, 0.01)
    assert (policy["model"]["lora_rank"], rollout["n"]) == (4, 4)
    assert (trainer["nnodes"], trainer["n_gpus_per_node"]) == (2, 4)
    assert (trainer["total_training_steps"], trainer["total_epochs"]) == (5, 3)
    assert told["data"]["train_files"] == [str(out / "train.parquet")]
    (loop,) = yaml.safe_load((out / "agent_loop.yaml").read_text())
    assert rollout["agent"]["default_agent_loop"] == loop["name"]
    assert rollout["agent"]["agent_loop_config_path"] == str(out / "agent_loop.yaml")
    assert loop["settings"] == str(out / "agentkit.yaml")


def test_all_that_does_not_run_in_verl_is_named(config, tmp_path):
    """Each switch is told with what to do instead, and nothing is written."""
    changes = (
        "coevolution.evidence=true",
        "coevolution.weighting=true",
        "policy.weights=local:smollm2-135m",
        "cold_start={batch_size: 4}",
        "hardware.devices=3",
    )
    done = written(config, tmp_path / "out", *changes)
    assert done.exit_code == 2
    for words in ("evidence", "weighting", "policy.weights", "cold_start", "8 rollouts a step"):
        assert words in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_export_needs_tasks_and_a_place(config, tmp_path):
    """An export without a task, or over a file, says so before a cluster is started for it."""
    text = config.read_text()
    nothing = parse_config(text, CoevolveConfig, changes=["tasks={source: arithmetic, train: 0}"])
    with pytest.raises(ExportError, match="no tasks to train on"):
        export_verl(nothing, tmp_path / "out")
    (tmp_path / "file").write_text("here")
    with pytest.raises(ExportError, match="file can not be written"):
        export_verl(parse_config(text, CoevolveConfig), tmp_path / "file")


@pytest.mark.skipif(
    importlib.util.find_spec("verl") is None,
    reason="verl has an environment of its own; make test-verl builds it and runs this",
)
@pytest.mark.filterwarnings("ignore")  # verl warns of every engine that is not installed
@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "dr_grpo"])
def test_verl_takes_the_configuration_of_a_run(config, tmp_path, loss_type):
    """What ``agentkit-train verl`` makes of a file passes verl's own checks, key by key."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    written(config, tmp_path / "out", f"engine.objective.loss_type={loss_type}")
    with initialize_config_dir(str(tmp_path / "out"), version_base=None):
        found = compose("verl")
    OmegaConf.resolve(found)
    validate_config(found, use_reference_policy=True, use_critic=False)
    actor = omega_conf_to_dataclass(found.actor_rollout_ref.actor)
    assert actor.ppo_mini_batch_size == 2
    assert found.trainer.total_training_steps == 5


class _Loop:
    def __init__(self, *, tokenizer, server_manager, rollout_config):
        self.tokenizer, self.server_manager = tokenizer, server_manager
        self.rollout_config = rollout_config


@dataclass
class PolicyServer:
    """A server with a policy of its own, which speaks as verl's do."""

    policy: object
    error: Exception | None = None
    asked: list = field(default_factory=list)

    async def generate(self, request_id, *, prompt_ids, sampling_params):
        if self.error is not None:
            raise self.error
        self.asked.append((request_id, sampling_params))
        prompt = Prompt(
            ids=tuple(prompt_ids),
            max_tokens=sampling_params["max_tokens"],
            temperature=sampling_params["temperature"],
            seed=0,
        )
        (one,) = complete(self.policy, [prompt])
        return SimpleNamespace(token_ids=list(one.ids), log_probs=list(one.logprobs))


@pytest.fixture
def loop(config, tmp_path, monkeypatch):
    """Makes our loop with a server, a double standing for what it takes of verl."""
    double = ModuleType("agent_loop")
    double.AgentLoopBase = _Loop
    double.AgentLoopMetrics = double.AgentLoopOutput = SimpleNamespace
    for name in ("verl", "verl.experimental", "verl.experimental.agent_loop"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "verl.experimental.agent_loop.agent_loop", double)
    monkeypatch.delitem(sys.modules, "agentkit_training.engines.verl.loop", raising=False)
    module = importlib.import_module("agentkit_training.engines.verl.loop")
    written(config, tmp_path / "out")

    def made(server, prompt_length=300):
        limits = SimpleNamespace(prompt_length=prompt_length, response_length=40)
        return module.AgentkitLoop(
            tokenizer=server.policy.tokenizer,
            server_manager=server,
            rollout_config=limits,
            settings=str(tmp_path / "out" / "agentkit.yaml"),
        )

    yield made
    sys.modules.pop("agentkit_training.engines.verl.loop", None)


def row(tmp_path):
    from pyarrow import parquet

    return parquet.read_table(tmp_path / "out" / "train.parquet").to_pylist()[0]


async def test_a_rollout_is_made_by_the_agent_and_judged(loop, tmp_path):
    """The prompt has the tools, the tokens are the server's, and the reward is the file's."""
    server = PolicyServer(tiny_policy())
    (found,) = await loop(server).run({"temperature": 1.0}, **row(tmp_path))
    tokenizer = server.policy.tokenizer
    assert "function calling assistant" in tokenizer.decode(found.prompt_ids)
    assert 1 <= len(found.response_ids) == sum(found.response_mask) <= 6
    assert len(found.response_logprobs) == len(found.response_ids)
    assert found.reward_score == pytest.approx(
        sum(v for k, v in found.extra_fields["reward_extra_info"].items() if k != "passed")
    )
    assert server.asked[0][1] == {"temperature": 1.0, "max_tokens": 6}


async def test_what_verl_can_not_train_on_is_left_out(loop, tmp_path):
    """A prompt that is too long makes no rows; what the server raises is verl's to know."""
    server = PolicyServer(tiny_policy())
    assert await loop(server, prompt_length=20).run({"temperature": 1.0}, **row(tmp_path)) == []
    server.error = OSError("the server is gone")
    with pytest.raises(OSError, match="the server is gone"):
        await loop(server).run({"temperature": 1.0}, **row(tmp_path))
