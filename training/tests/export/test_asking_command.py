"""The command that a run ends with: it asks what was trained, with the user's own tools."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit_training.cli.main import main

ORDERS = Path(__file__).parents[2] / "examples" / "orders"

WORLD = """
from agentkit.evaluation import ToolsEnvironment

class Shop(ToolsEnvironment):
    def __init__(self, task):
        super().__init__([{tools}])
"""


@pytest.fixture
def config(tmp_path, tiny_gguf):
    path = tmp_path / "own.yaml"
    path.write_text(
        f"policy: {{weights: {tiny_gguf}, precision: fp32, answer_tokens: 4, lora: {{rank: 2}}}}\n"
        f"tasks: {{source: {ORDERS}/tasks.jsonl, environment: {ORDERS}/tools.py}}\n"
        "asking: {max_steps: 1}\n"
        "coevolution: {steps: 1, tasks_per_step: 1, group_size: 2}\n"
        "watch: {checkpoint_every: 1}\n"
    )
    return path


def invoke(*arguments):
    """What a command says last."""
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return shlex.split(result.stderr.splitlines()[-1])


def test_a_run_ends_with_the_command_that_asks_it(config, tmp_path, tiny_gguf):
    """Adapter and tools are in it, and an export of the run says the same of its own files."""
    said = invoke("grpo", config, "--output", tmp_path / "run")
    adapter = tmp_path / "run" / "handover" / "adapter.gguf"
    asked = ["agentkit", "run", "QUESTION", "--model", f"local:{tiny_gguf}?adapter={adapter}"]
    assert said == [*asked, "--tools", f"{ORDERS}/tools.py"]
    exported = invoke("export", tmp_path / "run", "--output", tmp_path / "out")
    assert exported[-2:] == ["--tools", f"{ORDERS}/tools.py"]
    assert exported[4].endswith(f"?adapter={tmp_path / 'out' / 'adapter.gguf'}")


def test_a_world_of_its_own_is_no_option_of_the_command(config, tmp_path):
    """What makes a world for each task can not be given to an agent as its tools."""
    names = "order_status, order_price, cancel_order"
    world = tmp_path / "world.py"
    text = (ORDERS / "tools.py").read_text() + WORLD.format(tools=names)
    world.write_text(text.replace("from __future__ import annotations\n", ""))
    change = f"tasks.environment={world}:Shop"
    assert "--tools" not in invoke("grpo", config, "--output", tmp_path / "run", "--set", change)
