"""``plan`` and ``--dry-run`` say what a run does and needs before weights are there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit.errors import UsageError
from agentkit_training import tiny_policy
from agentkit_training.cli.main import COMMANDS, main
from agentkit_training.plan import GIB, SHAPES, shape_of

EXAMPLES = Path(__file__).parents[2] / "examples"
PUBLISHED = {  # millions of weights, as their model cards say
    "smollm2-135m": 135,
    "smollm2-1.7b": 1710,
    "qwen2.5-0.5b": 494,
    "qwen2.5-1.5b": 1540,
    "qwen2.5-3b": 3090,
    "qwen2.5-7b": 7610,
    "qwen2.5-14b": 14_770,
    "qwen2.5-32b": 32_760,
    "llama-3.1-8b": 8030,
}
TOOLS = """\
from agentkit import tool

@tool
def order_status(order: str) -> str:
    '''Where an order is.

    Args:
        order: Its number.
    '''
    if not order.startswith("A"):
        raise ValueError(f"no order {order}")
    return "shipped"
"""
SFT = """\
policy: {weights: models/Qwen2.5-7B-Instruct, answer_tokens: 100, batch_size: 32}
tasks: {source: TASKS, environment: TOOLS, shares: {train: 1, validation: 0, test: 0}}
asking: {max_steps: 1}
sft: {batch_size: 4, epochs: 3, input_tokens: 1000, max_tokens: 250}
hardware: {device_gib: 640}
"""
GRPO = """\
policy: {weights: models/Qwen2.5-7B-Instruct, device: cuda, answer_tokens: 128, batch_size: 16}
tasks: {source: hidden-constraints, train: 64, validation: 4, test: 4}
asking: {max_steps: 1}
coevolution: {tasks_per_step: 16, group_size: 8}
engine: {name: trl, parts: 2}
hardware: {machines: 1, devices: 8, device_gib: 80}
"""


def line(number, order):
    call = {"name": "order_status", "arguments": {"order": order}}
    expects = {"calls": [call], "contains": "shipped"}
    request = f"Where is order {order} of customer {number}?"
    return json.dumps(
        {"id": str(number), "request": request, "tools": ["order_status"], "expects": expects}
    )


@pytest.fixture
def tuning(tmp_path):
    """Fine-tuning on ten orders that are there, and one that is not."""
    (tmp_path / "tools.py").write_text(TOOLS)
    orders = [*(f"A{number}" for number in range(10)), "B1"]
    lines = [line(number, order) for number, order in enumerate(orders)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    path = tmp_path / "sft.yaml"
    text = SFT.replace("TASKS", str(tmp_path / "tasks.jsonl"))
    path.write_text(text.replace("TOOLS", str(tmp_path / "tools.py")))
    return path


@pytest.fixture
def rewards(tmp_path):
    """Sixteen tasks a step on eight devices."""
    path = tmp_path / "run.yaml"
    path.write_text(GRPO)
    return path


def run(*arguments, changes=()):
    more = [one for change in changes for one in ("--set", change)]
    return CliRunner().invoke(main, [str(one) for one in (*arguments, *more)])


def rehearsal(config, *changes, command="sft"):
    return run(command, config, "--output", config.parent / "run", "--dry-run", changes=changes)


def planned(config, *changes):
    done = run("plan", config, "--json", changes=changes)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command):
    """Each command has a help page with examples."""
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.stdout


def test_shapes_have_the_weights_that_are_published():
    """The table's shapes count as many weights as the models have, to one part in a hundred."""
    found = {name: shape.parameters / 1e6 for name, shape in SHAPES.items()}
    assert found == {name: pytest.approx(count, rel=0.01) for name, count in PUBLISHED.items()}


def test_a_shape_is_read_from_a_configuration():
    """The tiny model's weights are counted, norms aside; another kind is told what it lacks."""
    model = tiny_policy().model
    shape = shape_of(model.config)
    assert shape.parameters == pytest.approx(model.num_parameters(), rel=0.01)
    with pytest.raises(UsageError, match="num_attention_heads"):
        shape_of(object())


def test_rows_and_tokens_are_those_of_a_process(rewards):
    """Sixteen tasks on eight devices are sixteen rollouts each, read in two parts."""
    found = planned(rewards)
    assert found["devices"] == 8
    assert found["rows_at_once"] == 8
    assert found["written_tokens"] == 16 * 8 * 128


def test_the_lean_engine_reads_each_prompt_once(rewards):
    """TRL reads the prompt in every row."""
    lean, trl = planned(rewards, "engine={name: lean}"), planned(rewards)
    prompt = trl["prompt_tokens"]
    assert trl["read_tokens"] - lean["read_tokens"] == (16 * 8 - 16) * prompt


@pytest.mark.parametrize("engine", ["trl", "lean"])
def test_whole_weights_keep_float32_beside_bfloat16(rewards, engine):
    """In every engine, twelve bytes for each weight; adapters are in float32 and have eight."""
    found = planned(rewards, f"engine={{name: {engine}}}")
    assert found["bytes"]["optimizer"] == 12 * found["trained"]
    assert found["bytes"]["weights"] == 2 * found["parameters"]
    adapters = planned(rewards, f"engine={{name: {engine}}}", "policy.lora={rank: 16}")
    assert adapters["bytes"]["optimizer"] == 8 * adapters["trained"]
    assert adapters["trained"] < 0.01 * found["trained"]
    assert adapters["peak"] < 64 * GIB < found["peak"]


def test_verl_lays_what_learns_over_the_devices(rewards):
    """An eighth of the state on each of eight, beside a whole copy that writes."""
    alone, shared = planned(rewards), planned(rewards, "verl={tensor_parallel: 2}")
    assert shared["bytes"]["optimizer"] == alone["bytes"]["optimizer"] // 8
    assert shared["bytes"]["weights"] == pytest.approx(alone["bytes"]["weights"] * 9 / 8, rel=1e-6)


def test_adapters_that_are_gone_on_with_are_planned_as_adapters(rewards, tmp_path):
    """Their own file says their rank; nothing of the base learns."""
    (tmp_path / "peft").mkdir()
    (tmp_path / "peft" / "adapter_config.json").write_text('{"r": 16}')
    again = planned(rewards, f"policy.adapter={tmp_path / 'peft'}")
    assert again["trained"] == planned(rewards, "policy.lora={rank: 16}")["trained"]


def test_a_reference_is_held_beside_whole_weights_alone(rewards):
    """Adapters that are switched off are their own reference."""
    kl = "engine.objective.kl_coefficient=0.1"
    lora = "policy.lora={rank: 16}"
    whole, with_kl = planned(rewards), planned(rewards, kl)
    assert with_kl["bytes"]["weights"] == 2 * whole["bytes"]["weights"]
    assert planned(rewards, kl, lora)["bytes"] == planned(rewards, lora)["bytes"]


def test_vllm_takes_its_part_of_each_device(rewards):
    """Its share of the memory is gone, and keys and values are there."""
    found = planned(rewards, "engine.vllm={memory_share: 0.25}")
    assert found["bytes"]["writer"] == 20 * GIB
    assert found["bytes"]["cache"] == 0


def test_a_step_of_fine_tuning_reads_a_batch_and_writes_nothing(tuning):
    """As many examples of the greatest length are read at once as input_tokens has room for."""
    found = planned(tuning)
    assert (found["written_tokens"], found["read_tokens"]) == (0, 4 * 250)
    assert found["rows_at_once"] == 4
    assert planned(tuning, "sft.input_tokens=500")["rows_at_once"] == 2
    assert planned(tuning, "sft.input_tokens=10")["rows_at_once"] == 1
    assert planned(tuning, "sft.batch_size=48", "hardware.devices=4")["rows_at_once"] == 4


def test_what_is_kept_free_does_not_count(rewards):
    """A run that needs less than the whole device and more than what may be used does not fit."""
    needed = planned(rewards)["peak"] / GIB
    done = run("plan", rewards, "--device-gib", f"{needed / 0.95:.2f}")
    assert "does not fit" in done.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("toolace={rounds: 1}", "hardware.devices=2"), "the rounds of toolace run in one process"),
        (("sft.batch_size=7", "hardware.devices=2"), "take a multiple of 2"),
    ],
)
def test_what_several_processes_would_refuse_is_refused(tuning, changes, words):
    """A plan of a run that ends at once is no plan."""
    for done in (run("plan", tuning, changes=changes), rehearsal(tuning, *changes)):
        assert done.exit_code == 2
        assert words in done.stderr


def test_a_dry_run_warns_of_processes_without_tasks(rewards):
    """Tasks are shared out whole: with fewer than there are processes some do nothing."""
    done = rehearsal(rewards, "coevolution.tasks_per_step=6", command="grpo")
    assert "2 of 8 processes make no rollouts" in done.stderr


def test_unknown_weights_are_planned_without_memory(rewards):
    """A dry run goes on where nothing tells the shape."""
    done = rehearsal(rewards, "policy.weights=local:absent", command="grpo")
    assert done.exit_code == 0
    assert "no memory is reckoned" in done.stdout


@pytest.mark.parametrize("key", ["parts=2", "vllm={}"])
def test_what_trl_alone_does_is_refused_for_lean(rewards, key):
    """A key that would be passed over in silence is misuse."""
    done = rehearsal(rewards, "engine={name: lean}", f"engine.{key}", command="grpo")
    assert done.exit_code == 2
    assert "engine.name: trl" in done.stderr


def test_a_rehearsal_says_what_is_taught_and_what_fails(tuning):
    """The order that is not there is named with its error; ten answers make nine steps of four."""
    done = rehearsal(tuning)
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert "Teaches 10 answers: 9 steps of up to 4." in told
    assert '1 task is left out: a gold call fails: order_status(order="B1"): ValueError' in told
    assert "It fits into 640 GiB" in told
    assert "can not be passed in one turn: 11 of 11 in train" in done.stderr
    assert not (tuning.parent / "run").exists()


def test_a_cold_start_is_rehearsed(tuning, tmp_path):
    """Reinforcement learning that begins with fine-tuning says what it would teach, too."""
    text = tuning.read_text().replace("sft:", "cold_start:") + "coevolution: {steps: 1}\n"
    (tmp_path / "grpo.yaml").write_text(text)
    told = rehearsal(tmp_path / "grpo.yaml", command="grpo").stdout
    assert "Cold start: teaches 10 answers, 9 steps of up to 4." in told
    assert "1 task is left out: a gold call fails" in told


def test_nothing_to_teach_is_told_before_weights_are_there(tuning):
    """The error says why, by the key that the tasks expect."""
    tasks = tuning.parent / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "1", "request": "2 + 2?", "expects": {"number": 4}}) + "\n")
    done = rehearsal(tuning)
    assert done.exit_code == 2
    assert "no calls to teach: the task expects number" in done.stderr


def test_the_right_command_is_named(tuning, tmp_path):
    """A file for another command is told as such; one of both kinds by the key that is unknown."""
    for command, example, other in (("grpo", "sft", "sft"), ("sft", "grpo", "grpo or coevolve")):
        done = run(command, EXAMPLES / f"{example}.yaml", "--output", tmp_path, "--dry-run")
        assert done.exit_code == 2
        assert f"use agentkit-train {other}" in done.stderr
    both = rehearsal(tuning, "coevolution={steps: 1}", command="coevolve")
    assert both.exit_code == 2
    assert "sft is not known here" in both.stderr
