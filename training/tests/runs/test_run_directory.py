"""The folder of a run, readable after an interruption, and its figures in Weights & Biases."""

import json
import math

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import MissingExtraError, UsageError
from agentkit_training.errors import CheckpointError
from agentkit_training.runs import (
    LOG,
    Provenance,
    RunDirectory,
    StepRecord,
    Wandb,
    provenance,
    settings_of,
)

RECORDS = [
    StepRecord(step=n, phase="grpo", figures={"reward": n / 3, "loss": -1.5}, labels={"pass": n})
    for n in range(3)
]
names = st.text(min_size=1, max_size=8)


@pytest.fixture
def run(tmp_path):
    made = provenance(command="agentkit-train grpo", seeds={"rollouts": 3})
    return RunDirectory.create(tmp_path / "run", config="seed: 3\n", provenance=made)


def test_a_run_keeps_what_it_was_asked_for(run):
    """Configuration and provenance are read back as they were written."""
    again = RunDirectory(run.path)
    assert again.config == "seed: 3\n"
    assert again.provenance == run.provenance
    assert again.provenance.seeds == {"rollouts": 3}
    assert {"python", "torch", "agentkit-training"} <= set(again.provenance.versions)


def test_settings_that_are_gone_do_not_stop_an_older_run():
    """What there is one value of now is passed over where it was asked for, and told elsewhere."""
    gone = "hardware: {gpus: 8}\ntasks: {held_out_share: 1.0, seed: 3}\ntoolace: null\n"
    assert settings_of(gone) == {"tasks": {"seed": 3}, "toolace": None}
    kept = {"coevolution": {"every": 2}}
    assert settings_of(json.dumps(kept)) == kept


@given(
    record=st.builds(
        StepRecord,
        step=st.integers(0, 10**9),
        phase=names,
        figures=st.dictionaries(names, st.floats(allow_nan=False, allow_infinity=False)),
        labels=st.dictionaries(names, st.integers(1, 10**6)),
        notes=st.lists(names).map(tuple),
        steps=st.none() | st.integers(1, 10**6),
    )
)
def test_any_record_survives_its_line(record):
    """A record read from its own line is the record."""
    line = record.to_line()
    assert "\n" not in line
    assert StepRecord.from_json(json.loads(line)) == record


def test_a_figure_that_is_no_number_is_kept_as_such(run):
    """Not-a-number is null in the log, and comes back as not-a-number."""
    run.append(StepRecord(step=0, phase="sft", figures={"loss": math.nan}))
    assert '"loss":null' in (run.path / LOG).read_text()
    (record,) = run.records()
    assert math.isnan(record.figures["loss"])


def test_a_line_that_was_cut_short_is_passed_by(run):
    """An interruption in the middle of a line loses that line, and no other."""
    for record in RECORDS:
        run.append(record)
    log = run.path / LOG
    log.write_text(log.read_text()[:-10])
    assert list(run.records()) == RECORDS[:2]


def test_a_broken_line_in_the_middle_is_named(run):
    """A line that is no record is an error that says which one it is."""
    (run.path / LOG).write_text('{"step": 0}\nnonsense\n{"step": 2}\n')
    with pytest.raises(CheckpointError, match="line 2"):
        list(run.records())


def test_a_resumed_run_drops_the_steps_that_it_makes_again(run):
    """Rewound, the log holds what stays, and goes on behind it though a line had been cut short."""
    for record in RECORDS:
        run.append(record)
    log = run.path / LOG
    log.write_text(log.read_text()[:-10])
    run.rewind(lambda record: record.step < 1)
    run.append(RECORDS[1])
    assert list(run.records()) == RECORDS[:2]


def test_a_folder_in_use_is_not_written_into(run):
    """A new run takes an empty folder, and an old one is only opened where there is one."""
    run.append(RECORDS[0])
    with pytest.raises(UsageError, match="--resume"):
        RunDirectory.create(run.path, config="", provenance=Provenance())
    with pytest.raises(UsageError, match="not the folder of a run"):
        RunDirectory(run.path / "checkpoints")


def test_an_absent_tracker_says_what_to_install(run, monkeypatch):
    """Without its package a tracker names the line to type."""
    monkeypatch.setitem(__import__("sys").modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"agentkit-training\[wandb\]"):
        Wandb(run.path)


def test_a_folder_in_which_nothing_was_done_is_begun_anew(run):
    """A run that ended before its first record, for want of a package, leaves its folder usable."""
    again = RunDirectory.create(run.path, config="seed: 4\n", provenance=run.provenance)
    assert again.config == "seed: 4\n"
    again.rewind()  # an empty log is nothing, too
    RunDirectory.create(run.path, config="seed: 5\n", provenance=run.provenance)
    again.append(RECORDS[0])
    with pytest.raises(UsageError, match="is not empty; give another --output, or add --resume"):
        RunDirectory.create(run.path, config="seed: 6\n", provenance=run.provenance)


def test_a_log_that_can_not_be_written_is_told_with_the_room_there_is(run):
    """The error names the file, why, and how much is free on its disk."""
    (run.path / LOG).mkdir()
    with pytest.raises(CheckpointError, match=r"log.jsonl can not be written: .* MB free there"):
        run.append(RECORDS[0])


def test_phases_that_begin_again_at_step_0_lose_nothing(tmp_path, monkeypatch, capfd):
    """After the steps of a cold start those of training are taken too, and no step is refused."""
    pytest.importorskip("wandb", reason="W&B is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    tracker = Wandb(tmp_path)
    for phase, figure in (("cold start", "loss"), ("coevolve", "reward")):
        for step in range(3):
            tracker.log(StepRecord(step=step, phase=phase, figures={figure: float(step)}))
    tracker.close()
    told = capfd.readouterr().err
    assert "will be ignored" not in told
    for name in ("cold start/loss", "coevolve/reward"):
        assert f"{name} 2" in told


def test_a_run_that_goes_on_is_one_run_there_too(tmp_path, monkeypatch):
    """Opened again in the same folder it has the same id; a run elsewhere has another one."""
    pytest.importorskip("wandb", reason="W&B is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    (tmp_path / "other").mkdir()
    for folder in (tmp_path, tmp_path, tmp_path / "other"):
        tracker = Wandb(folder)
        tracker.log(StepRecord(step=0, phase="sft", figures={"loss": 1.0}))
        tracker.close()
    kept = [one.stem.partition("-")[2] for one in tmp_path.rglob("run-*.wandb")]
    assert len(kept) == 3
    assert len(set(kept)) == 2
