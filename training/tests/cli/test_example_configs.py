"""The configurations that are shipped as examples, and the demo's, can be used as they are."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit_training.cli.main import main
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.reading import parse_config, read_config, written_config

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.yaml"))
FETCHED = {"sft", "toolace", "multi_turn", "gsm8k"}  # their questions are downloaded


def kind_of(path):
    return SftConfig if "\nsft:" in path.read_text() else CoevolveConfig


def command_of(path):
    """The command that a file says it is started with."""
    known = ("sft", "grpo", "coevolve")
    words = path.read_text().replace("\\\n#", "").split()
    return next(word for word in words if word in known)


def run(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_configuration(path):
    """Each file is read, written out whole, and read back as the same."""
    kind = kind_of(path)
    config = read_config(path, kind)
    assert parse_config(written_config(config), kind) == config


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_names_its_command(path):
    """A reader sees in the file how to start it."""
    assert f"examples/{path.name} --output" in path.read_text()


@pytest.mark.parametrize(
    "path", [one for one in EXAMPLES if one.stem not in FETCHED], ids=lambda path: path.stem
)
def test_an_example_is_built_without_its_weights(path, tmp_path, monkeypatch):
    """A dry run of its command makes everything but the weights of it, and no folder."""
    monkeypatch.chdir(path.parents[1])  # where the comments of the examples start their commands
    command, folder = command_of(path), tmp_path / "run"
    done = run(command, path, "--output", folder, "--dry-run")
    assert done.exit_code == 0, done.output
    assert ("Warning" in done.stderr) is (path.stem == "eight_gpus_vllm")  # of vLLM, absent here
    assert not folder.exists()


def test_the_demo_is_a_configuration():
    """What the demo does can be read and changed as any other run."""
    text = resources.files("agentkit_training").joinpath("demo.yaml").read_text("utf-8")
    config = parse_config(text, CoevolveConfig)
    assert config.coevolution.evidence
    assert config.policy.lora is not None
