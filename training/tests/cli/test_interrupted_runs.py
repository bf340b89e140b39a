"""A run that Ctrl-C ended says where it is and how it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit.cli.boundary import EXIT_INTERRUPTED, LazyGroup
from agentkit.cli.options import command
from agentkit_training.cli.commands import RunOptions, told_once
from agentkit_training.runs import Provenance, RunDirectory


@command()
def begun(config: Path, options: RunOptions):
    """Begin a run, and be interrupted."""
    with told_once():
        told = Provenance(command=f"begun {config}", machine="")
        RunDirectory.create(options.folder, config="", provenance=told)
        raise KeyboardInterrupt


@command()
def idle(config: Path, options: RunOptions):
    """Be interrupted before there is a run."""
    with told_once():
        raise KeyboardInterrupt


@pytest.fixture
def program():
    """The outermost group of a program with both commands."""
    here = {"begun": (f"{__name__}:begun", ""), "idle": (f"{__name__}:idle", "")}
    return LazyGroup("program", commands=here)


def test_the_folder_and_the_way_on_are_told(program, tmp_path):
    """Whoever interrupts a run learns what to type, and shells learn that it was interrupted."""
    run = tmp_path / "run"
    result = CliRunner().invoke(program, ["begun", "run.yaml", "--output", str(run)])
    assert result.exit_code == EXIT_INTERRUPTED
    assert f"The run is in {run}; give the same command with --resume" in result.stderr
    assert "Interrupted; completed work is kept." in result.stderr
