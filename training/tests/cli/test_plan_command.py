"""``agentkit-train plan`` says what a run needs, and makes it fit where it can."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from agentkit_training.cli.main import COMMANDS, main


def plan(*arguments):
    return CliRunner().invoke(main, ["plan", *arguments])


def found(*arguments):
    result = plan(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_plan_is_a_table_for_people():
    """The table names what holds memory, and the tokens of a step."""
    result = plan("--model", "smollm2-135m", "--device-gib", "24")
    assert result.exit_code == 0
    assert "activations" in result.stdout
    assert "It fits into 24 GiB" in result.stdout


def test_what_does_not_fit_is_read_in_smaller_pieces():
    """Rows are halved, and activations computed again, until the step fits."""
    roomy = found("--model", "qwen2.5-1.5b", "--device-gib", "400", "--rows", "64")
    tight = found("--model", "qwen2.5-1.5b", "--device-gib", "32", "--rows", "64")
    assert roomy["fits"]
    assert tight["fits"]
    assert roomy["rows_at_once"] == 64
    assert tight["rows_at_once"] < 64
    assert roomy["read_tokens"] == tight["read_tokens"]


def test_what_can_not_fit_says_what_would_help():
    """A model too large for the device is met with adapters or more devices."""
    result = plan("--model", "qwen2.5-32b", "--device-gib", "24")
    assert "does not fit" in result.stdout
    assert "--lora 16" in result.stdout


def test_an_unknown_model_lists_the_known_ones():
    """A name that is no model is misuse."""
    result = plan("--model", "no-such-model")
    assert result.exit_code == 2
    assert "smollm2-135m" in result.stderr


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command):
    """Each command has a help page with examples."""
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
