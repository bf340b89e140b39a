"""``--dry-run`` says what a run does before weights are there, and shipped configurations work."""

import json
from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit_training.cli.main import COMMANDS, main
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.reading import parse_config, read_config, written_config

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
SFT = """\
policy: {weights: models/Qwen2.5-7B-Instruct, answer_tokens: 100, batch_size: 32}
tasks: {source: TASKS, environment: TOOLS, shares: {train: 1, validation: 0, test: 0}}
asking: {max_steps: 1}
sft: {batch_size: 4, epochs: 3, input_tokens: 1000, max_tokens: 250}
"""
GRPO = """\
policy: {weights: models/Qwen2.5-7B-Instruct, device: cuda, answer_tokens: 128, batch_size: 16}
tasks: {source: hidden-constraints, train: 64, validation: 4, test: 4}
asking: {max_steps: 1}
coevolution: {tasks_per_step: 16, group_size: 8}
engine: {name: trl, parts: 2}
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


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command):
    """Each command has a help page with examples."""
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.stdout


def test_what_several_processes_would_refuse_is_refused(tuning, monkeypatch):
    """A dry run in two processes refuses what the run would refuse."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = rehearsal(tuning, "toolace={rounds: 1}")
    assert done.exit_code == 2
    assert "the rounds of toolace run in one process" in done.stderr


def test_a_named_configuration_that_lacks_a_model_is_refused():
    """ToolDNA's feedback path asks one; the run itself could not begin."""
    given = ("--ablation", "tooldna", "--output", "none", "--dry-run")
    done = run("coevolve", EXAMPLES / "coevolve.yaml", *given)
    assert done.exit_code == 2
    assert "give one, such as feedback_model" in done.stderr
    assert (
        run("coevolve", EXAMPLES / "coevolve.yaml", "--ablation", "seal", *given[2:]).exit_code == 0
    )


def test_a_dry_run_warns_of_processes_without_tasks(rewards, monkeypatch):
    """Tasks are shared out whole: with fewer than there are processes some do nothing."""
    monkeypatch.setenv("WORLD_SIZE", "8")
    done = rehearsal(rewards, "coevolution.tasks_per_step=6", command="grpo")
    assert "2 of 8 processes would make no rollouts" in done.stderr


@pytest.mark.parametrize("key", ["parts=2", "vllm={}"])
def test_what_trl_alone_does_is_refused_for_lean(rewards, key):
    """A key that would be passed over in silence is misuse."""
    done = rehearsal(rewards, "engine={name: lean}", f"engine.{key}", command="grpo")
    assert done.exit_code == 2
    assert "engine.name: trl" in done.stderr


def test_a_rehearsal_says_what_is_taught(tuning):
    """Eleven answers make nine steps of four, and tasks that no turn can pass are told."""
    done = rehearsal(tuning)
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert "Teaches 11 answers: 9 steps of up to 4." in told
    assert "can not be passed in one turn: 11 of 11 in train" in done.stderr
    assert not (tuning.parent / "run").exists()


def test_a_cold_start_is_rehearsed(tuning, tmp_path):
    """Reinforcement learning that begins with fine-tuning says what it would teach, too."""
    text = tuning.read_text().replace("sft:", "cold_start:") + "coevolution: {steps: 1}\n"
    (tmp_path / "grpo.yaml").write_text(text)
    told = rehearsal(tmp_path / "grpo.yaml", command="grpo").stdout
    assert "Cold start: teaches 11 answers, 9 steps of up to 4." in told


def test_nothing_to_teach_is_told_before_weights_are_there(tuning):
    """The error says why, by the key that the tasks expect."""
    tasks = tuning.parent / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "1", "request": "2 + 2?", "expects": {"number": 4}}) + "\n")
    done = rehearsal(tuning)
    assert done.exit_code == 2
    assert "no calls to teach: the task expects number" in done.stderr


SHIPPED = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.yaml"))
FETCHED = {"sft", "toolace", "multi_turn", "gsm8k"}  # their questions are downloaded


def kind_of(path):
    return SftConfig if "\nsft:" in path.read_text() else CoevolveConfig


def command_of(path):
    """The command that a file says it is started with."""
    known = ("sft", "grpo", "coevolve")
    words = path.read_text().replace("\\\n#", "").split()
    return next(word for word in words if word in known)


def run_command(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_an_example_is_a_configuration(path):
    """Each file is read, written out whole, and read back as the same; it says how to start it."""
    kind = kind_of(path)
    config = read_config(path, kind)
    assert parse_config(written_config(config), kind) == config
    assert f"examples/{path.name} --output" in path.read_text()


@pytest.mark.parametrize(
    "path", [one for one in SHIPPED if one.stem not in FETCHED], ids=lambda path: path.stem
)
def test_an_example_is_built_without_its_weights(path, tmp_path, monkeypatch):
    """A dry run of its command makes everything but the weights of it, and no folder."""
    monkeypatch.chdir(path.parents[1])  # where the comments of the examples start their commands
    command, folder = command_of(path), tmp_path / "run"
    done = run_command(command, path, "--output", folder, "--dry-run")
    assert done.exit_code == 0, done.output
    assert ("Warning" in done.stderr) is (path.stem == "eight_gpus_vllm")  # of vLLM, absent here
    assert not folder.exists()


def test_the_demo_is_a_configuration():
    """What the demo does can be read and changed as any other run."""
    text = resources.files("agentkit_training").joinpath("demo.yaml").read_text("utf-8")
    config = parse_config(text, CoevolveConfig)
    assert config.coevolution.evidence
    assert config.policy.lora is not None
