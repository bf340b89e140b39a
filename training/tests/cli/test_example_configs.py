"""The configurations that are shipped as examples, and the demo's, can be used as they are."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.reading import parse_config, read_config, written_config

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_configuration(path):
    """Each file is read, written out whole, and read back as the same."""
    kind = SftConfig if "\nsft:" in path.read_text() else CoevolveConfig
    config = read_config(path, kind)
    assert parse_config(written_config(config), kind) == config


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_names_its_command(path):
    """A reader sees in the file how to start it."""
    assert f"examples/{path.name} --output" in path.read_text()


def test_the_demo_is_a_configuration():
    """What the demo does can be read and changed as any other run."""
    text = resources.files("agentkit_training").joinpath("demo.yaml").read_text("utf-8")
    config = parse_config(text, CoevolveConfig)
    assert config.coevolution.evidence
    assert config.policy.lora is not None
