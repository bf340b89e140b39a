"""The report of a run shows its curves, its labels and its library, and escapes what it quotes."""

import pytest

from agentkit_training.report import run_html
from agentkit_training.runs import Provenance, RunDirectory, StepRecord


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create(
        tmp_path / "run",
        config="task: <b>\n",
        provenance=Provenance(command="agentkit-train coevolve", machine="two cores"),
    )


def grpo(step, **figures):
    return StepRecord(
        step=step,
        phase="grpo",
        figures={name.replace("__", "/"): value for name, value in figures.items()},
        labels={"pass": step, "argument_mismatch": 4 - step},
        notes=("a proposal for <script> was rejected",) if step == 1 else (),
    )


def test_a_run_is_drawn(run):
    """Each figure of the log that the report knows is a curve; labels have curves of their shares."""
    for step in range(3):
        run.append(grpo(step, reward=step / 2, library__version=step + 1.0))
    page = run_html(run)
    assert "Mean reward of the rollouts (grpo)." in page
    assert "Version of the library after the step (grpo)." in page
    assert "Share of turns labelled argument mismatch (grpo)." in page
    assert "Loss" not in page


def test_texts_are_escaped(run):
    """What a model or a user wrote is text on the page, never markup."""
    run.append(grpo(1, reward=0.5))
    page = run_html(run)
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "<b>" not in page


def test_a_run_that_has_just_begun_is_a_page(run):
    """Without a step there is a page with what was asked for."""
    page = run_html(run)
    assert "What was asked for" in page
    assert "How the policy learns" not in page


def test_a_figure_is_compared_with_the_first_of_its_kind(run):
    """The tile of the accuracy shows one held-out part: its last value, and its first."""
    for phase, values in (("validation", (0.1, 0.5)), ("test", (0.0, 0.25))):
        for step, value in enumerate(values):
            run.append(StepRecord(step=step, phase=phase, figures={"accuracy": value}))
    page = run_html(run)
    assert "accuracy, test" in page
    assert "0% at first" in page


def test_a_log_without_the_version_before_a_step_does_not_call_it_the_first(run):
    """Logs of earlier releases say what the library was after each step alone."""
    for step in range(2):
        run.append(grpo(step, library__version=3.0))
    page = run_html(run)
    assert "3 after the first step" in page
    assert "at first" not in page
