"""The log of ToolACE-R's rounds says what was selected, what it brought, and why they ended."""

from __future__ import annotations

import pytest

from agentkit_training.config.jobs import SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.jobs.sft import sft_job
from agentkit_training.report import run_html

CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 8}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 2, test: 0}
asking: {max_steps: 1, tool_choice: required}
sft: {batch_size: 4, epochs: 2, optimizer: {learning_rate: 1e-3}}
"""


def told(folder, toolace, changes=(), **options):
    """The run, and what its rounds wrote into its log."""
    run = sft_job(parse_config(CONFIG + toolace, SftConfig, changes=changes), folder, **options)
    return run, [note for one in run.records() if one.phase == "toolace" for note in one.notes]


def test_a_round_without_samples_says_that_nothing_was_learned(tmp_path):
    """A random policy comes near no answer; neither log nor report look like a success."""
    run, notes = told(tmp_path / "run", "toolace: {rounds: 2, attempts: 2, refines: false}\n")
    assert notes[-2] == "round 1: 0 of 4 samples selected (4 too difficult); nothing was learned"
    assert notes[-1] == (
        "ended: round 1 had nothing to learn from, as all samples are too difficult (fine-tune "
        "without rounds first, or select higher); the policy is as it came"
    )
    assert "toolace</" not in run_html(run).partition("</header>")[0]


def test_a_round_that_gains_too_little_says_how_little(tmp_path):
    """The gain stands beside what was asked for, and a run that is over tells it once."""
    wanted = (
        "toolace: {rounds: 2, attempts: 2, refines: false, selection: {low: -1, high: 2}, "
        "least_gain: 2}\n"
    )
    _, notes = told(tmp_path / "run", wanted)
    assert notes[-2].startswith("round 1: 4 of 4 samples selected; 4 examples learned; ")
    assert notes[-1].startswith("ended: round 1 gained ")
    assert "points, less than least_gain 2" in notes[-1]
    _, again = told(tmp_path / "run", wanted, resumes=True)
    assert again == notes


TWO_ROUNDS = (
    "toolace: {rounds: 2, attempts: 2, refines: false, selection: {low: -1, high: 2}, "
    "least_gain: -1}\n"
)


@pytest.mark.parametrize("save_every", [1, 50])
def test_a_run_that_was_cut_twice_has_the_log_of_one_that_was_not(tmp_path, save_every):
    """It goes on inside a round, or after the last whole one, and nothing is told twice or lost."""

    def cut(record):
        if record.phase == "sft" and record.step == 3:
            raise KeyboardInterrupt

    def again(record):
        if record.notes == ("round 3: sft",):
            raise KeyboardInterrupt

    rounds = TWO_ROUNDS.replace("rounds: 2", "rounds: 3")
    changes = [f"sft.save_every={save_every}"]
    whole, _ = told(tmp_path / "whole", rounds, changes)
    for listen, resumes in ((cut, False), (again, True)):
        with pytest.raises(KeyboardInterrupt):
            told(tmp_path / "run", rounds, changes, listen=listen, resumes=resumes)
    run, _ = told(tmp_path / "run", rounds, changes, resumes=True)
    assert log_of(run) == log_of(whole)


def log_of(run):
    """What the log of a run says, but for times."""
    return [
        (one.phase, one.step, one.notes, one.figures.get("loss"), one.figures.get("accuracy"))
        for one in run.records()
    ]


def test_a_run_that_learned_nothing_is_measured_once(tmp_path):
    """Going on with it adds nothing to its log either."""
    wanted = "toolace: {rounds: 2, attempts: 2, refines: false}\n"
    run, _ = told(tmp_path / "run", wanted)
    first = log_of(run)
    assert [step for phase, step, *_ in first if phase == "validation"] == [0]
    run, _ = told(tmp_path / "run", wanted, resumes=True)
    assert log_of(run) == first
