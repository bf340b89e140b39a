"""Fine-tuning is planned and rehearsed before weights are there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit_training.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
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
OBSCURE = """\
from agentkit import tool

@tool
def zeta(q: str) -> str:
    '''Obscure.'''
    return "shipped"
"""
DISTRACTOR = """
@tool
def find_{0}(customer: str) -> str:
    '''Where is the order of the customer, number {0}.'''
    return customer
"""
CONFIG = """\
policy: {weights: models/Qwen2.5-7B-Instruct, answer_tokens: 100, batch_size: 32}
tasks: {source: TASKS, environment: TOOLS, shares: {train: 1, validation: 0, test: 0}}
asking: {max_steps: 1}
sft: {batch_size: 4, epochs: 3, input_tokens: 1000, max_tokens: 250}
hardware: {device_gib: 640}
"""


def line(number, order):
    call = {"name": "order_status", "arguments": {"order": order}}
    expects = {"calls": [call], "contains": "shipped"}
    request = f"Where is order {order} of customer {number}?"
    return json.dumps(
        {"id": str(number), "request": request, "tools": ["order_status"], "expects": expects}
    )


@pytest.fixture
def config(tmp_path):
    """Ten orders that are there, and one that is not."""
    (tmp_path / "tools.py").write_text(TOOLS)
    orders = [*(f"A{number}" for number in range(10)), "B1"]
    lines = [line(number, order) for number, order in enumerate(orders)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    path = tmp_path / "sft.yaml"
    text = CONFIG.replace("TASKS", str(tmp_path / "tasks.jsonl"))
    path.write_text(text.replace("TOOLS", str(tmp_path / "tools.py")))
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


def test_a_step_reads_a_batch_and_writes_nothing(config):
    """As many examples of the greatest length are read at once as input_tokens has room for."""
    found = planned(config)
    assert (found["written_tokens"], found["read_tokens"]) == (0, 4 * 250)
    assert found["rows_at_once"] == 4
    assert planned(config, "sft.input_tokens=500")["rows_at_once"] == 2
    assert planned(config, "sft.input_tokens=10")["rows_at_once"] == 1


def test_what_is_written_to_measure_is_planned(config):
    """Held-out tasks are tried all at once, as far as the batch of the policy goes."""
    assert planned(config)["written_at_once"] == 0
    shares = "tasks.shares={train: 0.6, validation: 0.0, test: 0.4}"
    assert planned(config, shares)["written_at_once"] in range(3, 7)
    assert planned(config, shares, "policy.batch_size=2")["written_at_once"] == 2
    rounds = (shares.replace("validation: 0.0", "validation: 0.1"), "toolace={attempts: 8}")
    assert planned(config, *rounds)["written_at_once"] == 32


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        (("policy.lora={rank: 8}", "hardware.device_gib=17.5"), "sft.input_tokens: "),
        (
            ("policy.lora={rank: 8}", "hardware.device_gib=16.8", "sft.input_tokens=1"),
            "sft.gradient_checkpointing: true",
        ),
        (("hardware.device_gib=24",), "policy.lora or smaller weights"),
        (
            (
                "policy={weights: smollm2-1.7b, lora: {rank: 8}, answer_tokens: 8000}",
                "sft.max_tokens=100",
                "sft.input_tokens=1",
                "tasks.shares={train: 0.2, validation: 0.0, test: 0.8}",
                "sft.gradient_checkpointing=true",
                "hardware.device_gib=12",
            ),
            "policy.batch_size: ",
        ),
    ],
    ids=["rows", "checkpointing", "nothing", "written"],
)
def test_the_keys_of_fine_tuning_are_advised(config, changes, advice):
    """A warning names those that make it fit, and never those of an engine that is not used."""
    done = run("plan", config, changes=changes)
    assert done.exit_code == 0, done.output
    assert "does not fit" in done.stderr
    assert advice in done.stderr
    assert "engine" not in done.stderr


LARGE = ("policy.lora={rank: 8}", "sft.batch_size=16", "hardware.devices=4")


def test_several_processes_read_what_trl_reads(config):
    """Each has its share of a batch, in parts of one size, and of the tasks that are measured."""
    assert planned(config, "sft.batch_size=16", "hardware.devices=4")["rows_at_once"] == 4
    assert planned(config, "sft.batch_size=48", "hardware.devices=4")["rows_at_once"] == 4
    shares = "tasks.shares={train: 0.3, validation: 0.0, test: 0.7}"
    alone = planned(config, shares)["written_at_once"]
    found = planned(config, shares, *LARGE)
    assert found["written_at_once"] == -(-alone // 4)
    assert found["bytes"]["optimizer"] == 8 * found["trained"]


def test_what_trl_does_not_read_is_not_advised(config):
    """The number of rows is not to be set there, so that checkpointing is what helps."""
    done = run("plan", config, changes=(*LARGE, "hardware.device_gib=20"))
    assert "; try sft.gradient_checkpointing: true" in done.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("toolace={rounds: 1}", "hardware.devices=2"), "the rounds of toolace run in one process"),
        (("sft.batch_size=7", "hardware.devices=2"), "take a multiple of 2"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "sft"])
def test_what_several_processes_would_refuse_is_refused(config, command, changes, words):
    """A plan of a run that ends at once is no plan."""
    done = (
        run("plan", config, changes=changes) if command == "plan" else rehearsal(config, *changes)
    )
    assert done.exit_code == 2
    assert words in done.stderr


def test_prompts_are_told_as_long_as_they_are(config):
    """Long answers neither shorten them nor make examples longer than max_tokens."""
    plain, long = (
        run("plan", config, changes=[change]).stdout
        for change in ("sft.max_tokens=250", "policy.answer_tokens=4000")
    )
    _, _, prompt = " ".join(plain.split()).partition("the longest prompt has about ")
    assert prompt.split()[0] in " ".join(long.split()).partition("prompt has about ")[2]
    assert int(prompt.split()[0]) > 100
    assert "a step reads up to 1,000 tokens" in " ".join(long.split())


def test_a_file_of_no_command_is_planned_as_rewards(config):
    """Weights and tasks alone are enough for either; what was assumed is told."""
    lines = config.read_text().splitlines()
    config.write_text("\n".join(one for one in lines if not one.startswith(("sft", "hardware"))))
    done = run("plan", config)
    assert "planned as a run of grpo" in done.stderr
    assert "rollouts a step" in done.stdout


def test_a_rehearsal_says_what_is_taught_and_what_fails(config):
    """The order that is not there is named with its error; ten answers make nine steps of four."""
    done = rehearsal(config)
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert "Teaches 10 answers: 9 steps of up to 4." in told
    assert '1 task is left out: a gold call fails: order_status(order="B1"): ValueError' in told
    assert "It fits into 640 GiB" in told
    assert not (config.parent / "run").exists()


def test_a_rehearsal_counts_trajectories(config):
    """With room for words after the calls whole trajectories are taught, as far as they solve."""
    told = " ".join(rehearsal(config, "asking.max_steps=3").stdout.split())
    assert "Teaches 10 trajectories: 9 steps of up to 4." in told


def test_tasks_that_nobody_can_pass_are_told(config):
    """These tasks want words after the call, and one turn ends with the call."""
    done = rehearsal(config)
    assert (
        "can not be passed in one turn: 11 of 11 in train; give asking.max_steps 2" in done.stderr
    )
    assert "can not be passed" not in rehearsal(config, "asking.max_steps=2").stderr


def test_rounds_are_rehearsed_as_rounds(config):
    """How many steps they take nobody knows before samples are selected."""
    told = " ".join(rehearsal(config, "toolace={rounds: 2}").stdout.split())
    assert "Up to 2 rounds on 10 answers; 8 samples of each tell which are taught" in told


def test_a_cold_start_is_rehearsed(config, tmp_path):
    """Reinforcement learning that begins with fine-tuning says what it would teach, too."""
    text = config.read_text().replace("sft:", "cold_start:") + "coevolution: {steps: 1}\n"
    (tmp_path / "grpo.yaml").write_text(text)
    told = rehearsal(tmp_path / "grpo.yaml", command="grpo").stdout
    assert "Cold start: teaches 10 answers, 9 steps of up to 4." in told
    assert "1 task is left out: a gold call fails" in told


def test_a_cold_start_is_rehearsed_with_the_tools_of_the_steps(config, tmp_path):
    """Where tools are retrieved, a solution is no use whose tool nothing would find."""
    found = [OBSCURE, *(DISTRACTOR.format(at) for at in range(30))]
    (tmp_path / "tools.py").write_text("\n".join(found))
    lines = (line(at, f"A{at}").replace("order_status", "zeta") for at in range(10))
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines).replace('"order"', '"q"'))
    text = config.read_text().replace("sft:", "cold_start:").replace("max_steps: 1", "max_steps: 3")
    (tmp_path / "grpo.yaml").write_text(text + "coevolution: {steps: 1, tools: given}\n")
    assert "teaches 10" in rehearsal(tmp_path / "grpo.yaml", command="grpo").stdout
    retrieved = "coevolution.tools=retrieved"
    refused = rehearsal(tmp_path / "grpo.yaml", retrieved, command="grpo")
    assert "nothing of tasks can be taught" in refused.stderr


def test_nothing_to_teach_is_told_before_weights_are_there(config):
    """The error says why, by the key that the tasks expect."""
    tasks = config.parent / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "1", "request": "2 + 2?", "expects": {"number": 4}}) + "\n")
    done = rehearsal(config)
    assert done.exit_code == 2
    assert "no calls to teach: the task expects number" in done.stderr
    assert "agentkit-train grpo" in done.stderr


@pytest.mark.parametrize(
    ("command", "example", "words"),
    [
        ("grpo", "sft.yaml", "fine-tuning: it has sft. Use agentkit-train sft"),
        ("coevolve", "toolace.yaml", "it has sft, toolace. Use agentkit-train sft"),
        ("sft", "grpo.yaml", "Use agentkit-train grpo or coevolve"),
    ],
)
def test_the_right_command_is_named(tmp_path, command, example, words):
    """A file for another command is told as such, rather than by each key that is not known."""
    done = run(command, EXAMPLES / example, "--output", tmp_path / "run", "--dry-run")
    assert done.exit_code == 2
    assert words in done.stderr


def test_a_file_of_both_kinds_is_told_by_its_keys(config):
    """Where sections of both are there, each that the command does not know is named."""
    done = rehearsal(config, "coevolution={steps: 1}")
    assert done.exit_code == 2
    assert "coevolution is not known here" in done.stderr


def test_the_sum_is_told_without_a_configuration():
    """How much is needed, how much is there, and what would help."""
    done = run("plan", "--model", "qwen2.5-32b", "--device-gib", 24)
    assert "It does not fit into 24 GiB: it needs " in done.stdout
    assert "21.60 are usable" in " ".join(done.stdout.split())
