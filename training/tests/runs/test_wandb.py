"""Weights & Biases, offline: every figure arrives, though phases count their steps anew."""

from __future__ import annotations

import pytest

from agentkit_training.runs import StepRecord, open_tracker


def test_phases_that_begin_again_at_step_0_lose_nothing(tmp_path, monkeypatch, capfd):
    """After the steps of a cold start those of training are taken too, and no step is refused."""
    pytest.importorskip("wandb", reason="W&B is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    tracker = open_tracker("wandb", folder=tmp_path, run="cold")
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
        tracker = open_tracker("wandb", folder=folder, run="resumed")
        tracker.log(StepRecord(step=0, phase="sft", figures={"loss": 1.0}))
        tracker.close()
    kept = [one.stem.partition("-")[2] for one in tmp_path.rglob("run-*.wandb")]
    assert len(kept) == 3
    assert len(set(kept)) == 2
