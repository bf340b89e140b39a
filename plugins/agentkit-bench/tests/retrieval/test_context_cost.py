"""The benchmark of what a growing library costs runs, and draws what it measured."""

import json
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest


@pytest.fixture
def measured(project_root, sample_files, tmp_path):
    """The rows and the picture for libraries of 6 and of 11 tools."""
    script = project_root / "tests" / "benchmarks" / "context" / "context_cost.py"
    tools, queries = map(str, sample_files)
    command = [sys.executable, str(script), "--tools", tools, "--queries", queries]
    command += ["--sizes", "6", "11", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "context.json").read_text())["rows"]
    return rows, (tmp_path / "context.svg").read_text()


def test_every_method_is_measured_at_every_size_and_drawn(measured):
    """A model that reads the whole library sees all gold tools; others pay for what they read."""
    rows, picture = measured
    by_place = {(row["method"], row["tools"]): row for row in rows}
    methods = {"flat library", "paper", "paper, right types", "default"}
    assert {(method, size) for method in methods for size in (6, 11)} <= by_place.keys()
    assert by_place["flat library", 11]["shown_recall"] == 1.0
    assert by_place["flat library", 11]["tokens"] > by_place["flat library", 6]["tokens"]
    assert by_place["paper", 11]["tokens"] > by_place["paper", 11]["shown"]
    assert by_place["default", 11]["tokens"] == by_place["default", 11]["shown"] <= 1600
    shown = [text.text for text in ET.fromstring(picture).iter() if text.text]
    assert methods <= set(shown)
