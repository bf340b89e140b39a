"""Fine-tuning from a configuration: a folder with log, report and trained policy."""

import pytest

from agentkit.errors import UsageError
from agentkit_training.config.jobs import SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.jobs.sft import sft_job
from agentkit_training.policy.loading import load_policy
from agentkit_training.tasks.loading import load_tasks_for_training

CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 8}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 2, test: 2}
asking: {max_steps: 1, tool_choice: required}
sft: {batch_size: 4, epochs: 2, optimizer: {learning_rate: 1e-3}}
"""


def job(folder, *changes, **options):
    return sft_job(parse_config(CONFIG, SftConfig, changes=changes), folder, **options)


def test_a_run_leaves_log_report_and_policy(tmp_path):
    """Held-out tasks are measured before and after, and the policy can be loaded again."""
    run = job(tmp_path / "run")
    phases = [one.phase for one in run.records()]
    assert phases[:2] == ["validation", "test"]
    assert phases[-2:] == ["validation", "test"]
    losses = [one.figures["loss"] for one in run.records() if one.phase == "sft"]
    assert losses[-1] < losses[0]
    assert "How the policy learns" in (run.path / "report.html").read_text()
    assert load_policy(run.path / "policy", precision="fp32").name == "tiny"
    assert (
        run.provenance.data
        == load_tasks_for_training(parse_config(CONFIG, SftConfig).tasks).digests
    )


def test_iterations_need_validation_tasks(tmp_path):
    """Rounds end by what they gain on them, so that none is a mistake in the file."""
    with pytest.raises(UsageError, match="toolace chooses by the validation tasks"):
        job(tmp_path / "run", "toolace={rounds: 1}", "tasks.validation=0")


def test_a_run_that_is_gone_on_with_has_each_step_once(tmp_path):
    """Steps after the newest checkpoint are done and told again; the first measurement stays."""
    whole = job(tmp_path / "whole")

    def stop(record):
        if record.phase == "sft" and record.step == 1:
            raise KeyboardInterrupt

    changes = ["sft.save_every=1", "sft.batch_size=2"]
    with pytest.raises(KeyboardInterrupt):
        job(tmp_path / "run", *changes, listen=stop)
    run = job(tmp_path / "run", *changes, resumes=True)
    job(tmp_path / "run", *changes, resumes=True)  # and once more when all is done
    told = [(one.phase, one.step) for one in run.records()]
    assert len(set(told)) == len(told)
    assert [step for phase, step in told if phase == "sft"] == [0, 1, 2, 3]
    measured = {one.step for one in whole.records() if one.phase == "test"}
    assert {step for phase, step in told if phase == "test"} == {0, 4} != measured


def test_what_can_not_be_taught_is_told_before_anything_is_measured(tmp_path):
    """Room for no example ends the run at once."""
    with pytest.raises(UsageError, match="4 tasks are left out: too long"):
        job(tmp_path / "run", "sft.max_tokens=20")
    assert not (tmp_path / "run" / "log.jsonl").exists()
