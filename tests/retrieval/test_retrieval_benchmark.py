"""The benchmark script runs on any corpus, and real corpora keep their quality."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def measure(project_root, tmp_path):
    """Runs the benchmark on a corpus folder and gives the figures that it wrote."""

    def run(folder: Path, *options: str):
        script = project_root / "tests" / "benchmarks" / "bench_retrieval.py"
        out = tmp_path / "figures.json"
        command = [sys.executable, str(script), str(folder), "--out", str(out), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("| | ")
        return json.loads(out.read_text())["rows"][0]

    return run


def test_the_benchmark_counts_tools_of_one_name_as_one(measure, tmp_path):
    """Two definitions of a name in the corpus do not make recall worse."""
    tools = [
        ("1", "get_weather", "Weather."),
        ("2", "get_weather", "Weather now."),
        ("3", "b", "B."),
    ]
    with (tmp_path / "tools.jsonl").open("w") as lines:
        for key, name, text in tools:
            record = {"id": key, "name": name, "description": text, "parameters": {}}
            lines.write(json.dumps(record) + "\n")
    question = {"query": "weather", "gold_tools": ["1"]}
    (tmp_path / "retrieval.jsonl").write_text(json.dumps(question) + "\n")
    row = measure(tmp_path)
    assert row["quality"]["recall@1"] == 1.0
    assert row["tools"] == 3


FLOORS = {
    "bfcl": {"recall@5": 0.86, "recall@32": 0.94, "offered": 0.80},
    "seal_tools": {"recall@5": 0.86, "recall@32": 0.95, "offered": 0.86},
    "nestful": {"recall@5": 0.45, "recall@32": 0.86, "offered": 0.45},
}


@pytest.mark.corpora
@pytest.mark.parametrize("corpus", FLOORS)
def test_quality_on_public_corpora(measure, project_root, corpus):
    """Ranking does not fall below what was measured, less the error of a sample."""
    root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))
    if not (root / corpus).is_dir():
        pytest.skip(f"no corpus {corpus!r} in {root}; name the folder in AGENTKIT_CORPORA")
    row = measure(root / corpus, "--max-queries", "300")
    low = {name: row["quality"][name] for name, floor in FLOORS[corpus].items()}
    assert {name for name, value in low.items() if value < FLOORS[corpus][name]} == set(), low
    assert row["tokens"]["shown_max"] <= 1600
