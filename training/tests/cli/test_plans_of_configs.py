"""``agentkit-train plan CONFIG`` and ``--dry-run`` say what a run makes of its devices."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from agentkit_training.cli.main import main

CONFIG = """\
policy: {weights: models/Qwen2.5-7B-Instruct, device: cuda, answer_tokens: 128, batch_size: 16}
tasks: {source: hidden-constraints, train: 64, validation: 4, test: 4}
asking: {max_steps: 1}
coevolution: {tasks_per_step: 16, group_size: 8}
engine: {name: trl, parts: 2}
hardware: {machines: 1, devices: 8, device_gib: 80}
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(CONFIG)
    return path


def run(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


def planned(config, *changes):
    more = [one for change in changes for one in ("--set", change)]
    done = run("plan", config, "--json", *more)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_rows_and_tokens_are_those_of_a_process(config):
    """Sixteen tasks on eight devices are sixteen rollouts each, read in two parts."""
    found = planned(config)
    assert found["devices"] == 8
    assert found["rows_at_once"] == 8
    assert found["written_tokens"] == 16 * 8 * 128


def test_shares_take_less_beside_a_whole_policy(config):
    """With FSDP2 gradients and state shrink to an eighth; weights are whole and once more shared."""
    precise = "policy.precision=fp32"
    whole, shared = planned(config, precise), planned(config, precise, "engine.sharding=fsdp")
    assert shared["bytes"]["optimizer"] == pytest.approx(whole["bytes"]["optimizer"] / 8, rel=1e-6)
    assert shared["bytes"]["weights"] == pytest.approx(whole["bytes"]["weights"] * 9 / 8, rel=1e-6)
    assert shared["peak_bytes"] < whole["peak_bytes"]


@pytest.mark.parametrize(
    "change", ["engine.sharding=fsdp", "engine.sharding=zero3", "verl={tensor_parallel: 2}"]
)
def test_shares_keep_float32_weights_beside_bfloat16(config, change):
    """Twelve bytes for each weight, an eighth of them on each device; verl shares out as well."""
    found = planned(config, change)
    assert found["bytes"]["optimizer"] == pytest.approx(12 * 7_615_283_200 / 8, rel=1e-3)


@pytest.mark.parametrize("engine", ["trl", "lean"])
def test_whole_weights_keep_float32_beside_bfloat16(config, engine):
    """In every engine, twelve bytes for each weight; adapters are in float32 and have eight."""
    found = planned(config, f"engine={{name: {engine}}}")
    assert found["bytes"]["optimizer"] == 12 * found["trained"]
    adapters = planned(config, f"engine={{name: {engine}}}", "policy.lora={rank: 16}")
    assert adapters["bytes"]["optimizer"] == 8 * adapters["trained"]


def test_adapters_that_are_gone_on_with_are_planned_as_adapters(config, tmp_path):
    """Their own file says their rank; nothing of the base learns."""
    (tmp_path / "peft").mkdir()
    (tmp_path / "peft" / "adapter_config.json").write_text('{"r": 16}')
    again = planned(config, f"policy.adapter={tmp_path / 'peft'}")
    assert again["trained"] == planned(config, "policy.lora={rank: 16}")["trained"]


def test_vllm_takes_its_part_of_each_device(config):
    """Beside the trainer its share of the memory is gone; on a server it is not."""
    beside = planned(config, "engine.vllm={memory_share: 0.25}")
    served = planned(config, "engine.vllm={mode: server}")
    assert beside["bytes"]["writer"] == 20 * 2**30
    assert beside["bytes"]["cache"] == 0
    assert served["bytes"]["writer"] == 0


def test_other_devices_may_be_asked_about(config):
    """Number and memory of devices are options; all else is a key of the configuration."""
    done = run("plan", config, "--devices", 2, "--device-gib", 24)
    assert "2 processes" in done.stdout
    assert "does not fit into 24 GiB" in done.stderr
    refused = run("plan", config, "--lora", 16)
    assert refused.exit_code == 2
    assert "--set" in refused.stderr


def test_a_plan_needs_something_to_plan():
    """Neither a configuration nor a model is misuse."""
    done = run("plan")
    assert done.exit_code == 2
    assert "--model" in done.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("hardware.device_gib=32", "policy.lora={rank: 16}", "engine.parts=1"), "engine.parts: "),
        (("hardware.device_gib=24", "policy.lora=null"), "policy.lora or engine.sharding: fsdp"),
        (
            (
                "policy.lora={rank: 16}",
                "engine={name: lean, max_tokens: 65536}",
                "hardware={device_gib: 32}",
            ),
            "engine.max_tokens: ",
        ),
    ],
)
def test_a_dry_run_warns_of_what_does_not_fit(config, tmp_path, changes, words):
    """The warning names the keys that would make it fit."""
    more = [one for change in changes for one in ("--set", change)]
    done = run("grpo", config, "--output", tmp_path / "run", "--dry-run", *more)
    assert done.exit_code == 0
    assert "does not fit" in done.stderr
    assert words in done.stderr


def test_the_warning_says_what_is_kept_free(config):
    """A run that needs less than the whole device and more than what may be used does not fit."""
    needed = planned(config)["peak_bytes"] / 2**30
    done = run("plan", config, "--device-gib", f"{needed / 0.95:.2f}")
    assert f"it needs {needed:,.2f} GiB, and " in done.stderr
    assert "are usable, as 10% stay free" in done.stderr
    assert "10% kept free" in done.stdout


@pytest.mark.parametrize(
    ("engine", "advice"),
    [
        ("parts: 1, gradient_checkpointing: true", "engine.parts: 4"),
        ("parts: 16", "engine.gradient_checkpointing: true"),
        ("parts: 1", "engine.parts: 16 and engine.gradient_checkpointing: true"),
    ],
)
def test_what_is_set_already_is_not_advised(config, engine, advice):
    """Checkpointing that is on is no advice, and neither is a number of parts that stays."""
    changes = (f"engine={{name: trl, {engine}}}", "policy.lora={rank: 16}")
    more = [one for change in changes for one in ("--set", change)]
    done = run("plan", config, "--device-gib", 18, *more)
    assert " ".join(done.stderr.split()).endswith(f"; try {advice}")


def test_a_dry_run_warns_of_processes_without_tasks(config, tmp_path):
    """Tasks are shared out whole: with fewer than there are processes some do nothing."""
    more = ("--set", "coevolution.tasks_per_step=6")
    done = run("grpo", config, "--output", tmp_path / "run", "--dry-run", *more)
    assert "2 of 8 processes make no rollouts" in done.stderr


def test_unknown_weights_are_planned_without_memory(config, tmp_path):
    """A dry run goes on where nothing tells the shape; a plan as data can not."""
    more = ("--set", "policy.weights=local:absent")
    done = run("grpo", config, "--output", tmp_path / "run", "--dry-run", *more)
    assert done.exit_code == 0
    assert "no memory is reckoned" in done.stdout
    assert run("plan", config, "--json", *more).exit_code == 2


@pytest.mark.parametrize("key", ["parts=2", "sharding=fsdp", "vllm={}"])
def test_what_trl_alone_does_is_refused_for_lean(config, tmp_path, key):
    """A key that would be passed over in silence is misuse."""
    more = ("--set", "engine={name: lean}", "--set", f"engine.{key}")
    done = run("grpo", config, "--output", tmp_path / "run", "--dry-run", *more)
    assert done.exit_code == 2
    assert "engine.name: trl" in done.stderr
