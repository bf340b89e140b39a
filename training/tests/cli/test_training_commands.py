"""The commands train, measure and export from one file, and say how an interrupted run goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit.cli.boundary import EXIT_INTERRUPTED, LazyGroup
from agentkit.cli.options import command
from agentkit_training.cli.commands import RunOptions, told_once
from agentkit_training.cli.main import main
from agentkit_training.runs import Provenance, RunDirectory

CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 6}
tasks: {source: hidden-constraints, kinds: [enum], train: 2, validation: 2, test: 2}
asking: {max_steps: 1, tool_choice: required}
coevolution: {steps: 1, tasks_per_step: 2, group_size: 2}
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(CONFIG)
    return path


def invoke(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


def test_grpo_prints_before_and_after(config, tmp_path):
    """The table shows each held-out part with its accuracy before and after."""
    result = invoke("grpo", config, "--output", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "before" in result.stdout
    assert "validation" in result.stdout
    assert (tmp_path / "run" / "report.html").exists()


def test_each_phase_says_how_far_it_is(config, tmp_path):
    """The steps of a cold start are counted by its own number of them, not by the training's."""
    cold = "cold_start={batch_size: 1, epochs: 1}"
    result = invoke("grpo", config, "--output", tmp_path / "run", "--set", cold)
    assert result.exit_code == 0, result.output
    told = [one for one in result.stderr.splitlines() if one.startswith("cold start: ")]
    assert told[-1].startswith("cold start: 100%")
    assert all("100%" not in one for one in told[:-1])
    log = [json.loads(one) for one in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [one["steps"] for one in log if "steps" in one] == [2, 2]


def test_grpo_leaves_the_library_to_coevolve(config, tmp_path):
    """A switch that changes the library is misuse of grpo."""
    result = invoke("grpo", config, "--output", tmp_path, "--set", "coevolution.evidence=true")
    assert result.exit_code == 2
    assert "agentkit-train coevolve" in result.stderr


def test_a_run_is_not_gone_on_with_under_other_settings(config, tmp_path):
    """What differs stands on lines of its own, by its key."""
    run = tmp_path / "run"
    invoke("grpo", config, "--output", run, "--set", "coevolution.steps=0")
    changes = ("--set", "coevolution.seed=3", "--set", "policy.answer_tokens=8")
    result = invoke("grpo", config, "--output", run, "--resume", *changes)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:3] == [
        "  policy.answer_tokens: 6 in the run, 8 asked for",
        "  coevolution.seed: 0 in the run, 3 asked for",
    ]


def test_evaluate_reads_the_file_of_a_training(config):
    """The policy of the file answers the test tasks; the report is that of the runtime."""
    result = invoke("evaluate", config, "--json", "--attempts", 2)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["total"]["attempts"] == 4


def test_export_needs_weights_that_the_runtime_can_load(config, tmp_path):
    """A run whose weights are no GGUF file can not be handed over, and says why."""
    invoke("grpo", config, "--output", tmp_path / "run", "--set", "watch.checkpoint_every=1")
    result = invoke("export", tmp_path / "run", "--output", tmp_path / "out")
    assert result.exit_code == 1
    assert "GGUF" in result.stderr or "gguf" in result.stderr


def test_the_folder_of_a_page_is_made(config, tmp_path):
    """A long evaluation does not end without its page because a folder was not there."""
    invoke("grpo", config, "--output", tmp_path / "run", "--set", "coevolution.steps=0")
    page = tmp_path / "absent" / "page.html"
    assert invoke("report", tmp_path / "run", "--output", page).exit_code == 0
    assert page.is_file()


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
