"""``agentkit demo`` on a small benchmark of our own, with a scripted model."""

import shutil
from pathlib import Path

import pytest

from agentkit.evaluation.bfcl import RELEASE, bfcl_files

SAMPLE = Path(__file__).parents[1] / "evaluation" / "sample_bfcl"
CALL = ["set_lamp", {"room": "kitchen", "state": "off"}]


@pytest.fixture(autouse=True)
def questions(invoke, tmp_path):
    """The sample lies in the cache as if it had been fetched; files it lacks are empty."""
    folder = shutil.copytree(SAMPLE, tmp_path / "cache" / f"bfcl-{RELEASE}")
    for name in bfcl_files():
        (folder / name).touch()


def test_the_report_is_on_stdout_and_the_plan_on_stderr(invoke, script):
    """The tables are data; plan, progress and what to do next are messages."""
    script(*[CALL] * 8)
    result = invoke("demo", "--questions", "2", "--model", "script:a")
    assert result.exit_code == 0, result.stderr
    for line in ("gold tools found", "exactly right calls", "By category", "Not asked: 1 question"):
        assert line in result.stdout
    assert "The main job, with script" in result.stderr
    assert "8 tools in library version 1" in result.stderr
    assert "Where to look next:" in result.stderr


def test_json_is_the_whole_report(as_json, script):
    """--json prints the report as one object."""
    script(*[CALL] * 8)
    report = as_json("demo", "--questions", "2", "--model", "script:a")
    assert report["planned"] == 2
    assert [c["condition"] for c in report["conditions"]] == ["retrieved", "given"]
    assert report["retrieval"]["questions"] == 8


def test_what_to_look_at_next_works(invoke, script):
    """Each command that the demo suggests runs."""
    script(*[CALL] * 8)
    told = invoke("demo", "--questions", "2", "--model", "script:a").stderr
    suggested = [line.strip() for line in told.splitlines() if line.startswith("  agentkit ")]
    assert len(suggested) >= 3
    for line in suggested:
        words = line.replace('"', "").replace("area of a triangle", "triangle").split()
        assert invoke(*words[1:]).exit_code == 0, line


def test_a_second_demo_imports_nothing(invoke, as_json, script):
    """The catalogue is there already, so the library keeps its version."""
    for _ in range(2):
        script(*[CALL] * 8)
        report = as_json("demo", "--questions", "1", "--model", "script:a")
    assert report["library_version"] == 1
    assert len(as_json("episodes", "list", "--limit", "0")) == 4


def test_a_missing_model_is_told_before_anything_is_fetched(invoke, tmp_path):
    """The model is looked up first, so that nothing is done in vain."""
    shutil.rmtree(tmp_path / "cache")
    result = invoke("demo", "--model", "nobody:x")
    assert result.exit_code == 2
    assert not (tmp_path / "cache").exists()


def test_no_time_budget_asks_every_question(as_json, script):
    """With --time-budget 0 there is no bound."""
    script(*[CALL] * 40)
    report = as_json("demo", "--time-budget", "0", "--model", "script:a")
    assert report["stopped"] == ""
    assert len(report["answers"]) == 14


def test_a_fresh_home_is_enough(invoke, script, tmp_path, monkeypatch):
    """Without any folder of ours the demo makes the one that its store lies in."""
    monkeypatch.delenv("AGENTKIT_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "no" / "data"))
    script(*[CALL] * 4)
    result = invoke("demo", "--questions", "1", "--model", "script:a")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "no" / "data" / "agentkit" / "demo.db").exists()
