"""What a run has trained is asked again as it was left, with the user's own tools."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit._waiting import wait_for
from agentkit.errors import UsageError
from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest, ModelSettings
from agentkit_training.cli.main import main
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.evaluate import trained_by
from agentkit_training.policy.loading import load_policy
from agentkit_training.policy.lora import load_adapter
from agentkit_training.policy.policy import tiny_policy
from agentkit_training.runs import RunDirectory

CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 4}
tasks: {source: hidden-constraints, kinds: [enum], train: 2, validation: 0, test: 2}
asking: {max_steps: 1, tool_choice: required}
coevolution: {steps: 0, tasks_per_step: 1, group_size: 2, evidence: true}
cold_start: {batch_size: 2, epochs: 6, optimizer: {learning_rate: 0.05}}
"""
FROZEN = ("frozen=true", "cold_start=null")
"""A run in which only the library learns."""


def configured(*changes):
    return parse_config(CONFIG, CoevolveConfig, changes=changes)


def said_by(model):
    """What a model writes, its likeliest words."""
    asked = ModelRequest(
        messages=(UserMessage(text="A loan of 12."),), settings=ModelSettings(temperature=0)
    )
    return wait_for(model.complete(asked)).message.text


def test_adapters_answer_over_what_they_were_trained_over(tmp_path):
    """The policy is the one that was trained, not the one that it began as; so is the library."""
    config = configured("policy.lora={rank: 4}")
    run = coevolve_job(config, tmp_path)
    trained = trained_by(run, config.policy)
    expected = config.policy.model(load_adapter(tiny_policy(), tmp_path / "policy"))
    assert said_by(trained.model) == said_by(expected)
    assert said_by(trained.model) != said_by(config.policy.model(tiny_policy()))
    assert trained.library == tmp_path / "library.json"


def test_whole_weights_answer_in_the_place_of_those_they_began_as(tmp_path):
    """Without adapters the run's own weights are loaded, whatever the section names."""
    config = configured("coevolution.evidence=false")
    run = coevolve_job(config, tmp_path)
    other = replace(config.policy, weights="/nowhere")
    trained = trained_by(run, other)
    expected = config.policy.model(load_policy(tmp_path / "policy", precision="fp32"))
    assert said_by(trained.model) == said_by(expected)
    assert said_by(trained.model) != said_by(config.policy.model(tiny_policy()))
    assert trained.library is None


def test_a_frozen_policy_is_left_with_the_adapters_it_was_given(tmp_path):
    """Where only the library learned, who answered in the run answers again."""
    first = coevolve_job(configured("policy.lora={rank: 4}"), tmp_path / "first")
    given = configured(*FROZEN, f"policy.adapter={first.path / 'policy'}")
    run = coevolve_job(given, tmp_path / "second")
    again = trained_by(run, replace(given.policy, adapter=""))
    assert said_by(again.model) == said_by(trained_by(first, given.policy).model)
    bare = coevolve_job(configured(*FROZEN), tmp_path / "bare")
    assert said_by(trained_by(bare, given.policy).model) != said_by(again.model)


def test_a_run_that_left_nothing_says_so(tmp_path):
    """A run broken off has neither policy nor library, and the message says what to do."""

    class StopError(Exception):
        pass

    def stop(_):
        raise StopError

    config = configured("watch.checkpoint_every=1")
    with pytest.raises(StopError):
        coevolve_job(config, tmp_path / "run", listen=stop)
    with pytest.raises(UsageError, match=r"has left nothing.*--resume"):
        trained_by(RunDirectory(tmp_path / "run"), config.policy)


@pytest.mark.parametrize("form", ["tiny", "gguf"])
def test_evaluate_asks_a_run(tmp_path, form, tiny_gguf):
    """One option asks a run of either form, on weights of the user's own, too."""
    weights = {"tiny": "tiny", "gguf": str(tiny_gguf)}[form]
    text = CONFIG.replace("weights: tiny", f"weights: {weights}, lora: {{rank: 2}}")
    (tmp_path / "own.yaml").write_text(text)
    coevolve_job(parse_config(text, CoevolveConfig), tmp_path / "run")
    assert (tmp_path / "run" / "handover").is_dir() is (form == "gguf")
    command = ["evaluate", str(tmp_path / "own.yaml"), "--run", str(tmp_path / "run"), "--json"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["total"]["attempts"] == 2


def read_by(*arguments):
    """How many tokens were read in an evaluation."""
    result = CliRunner().invoke(main, ["evaluate", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["total"]["usage"]["prompt_tokens"]


def test_a_run_is_asked_with_the_tools_that_it_was_asked_with(tmp_path):
    """Where retrieval found them in training it does so again, and the file may say it, too."""
    config = tmp_path / "own.yaml"
    config.write_text(CONFIG)
    retrieved = "coevolution.tools=retrieved"
    coevolve_job(configured(retrieved), tmp_path / "run")
    again = read_by(config, "--run", tmp_path / "run")
    coevolve_job(configured(), tmp_path / "other")
    assert read_by(config, "--run", tmp_path / "other") < again
    library = tmp_path / "run" / "library.json"
    assert read_by(config, "--set", retrieved, "--library", library) == again
    assert read_by(config, "--set", retrieved) > read_by(config)


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
