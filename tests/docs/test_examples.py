"""The examples run as a reader would run them: offline, in seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SCRIPTS = [  # the modules beside a script in a folder of its own are imported by it
    path
    for path in sorted(EXAMPLES.rglob("*.py"))
    if path.parent == EXAMPLES or "__main__" in path.read_text()
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_example_runs(path: Path, tmp_path: Path) -> None:
    """A script under examples/ succeeds without key, network or input, and prints something."""
    keys = {name for name in os.environ if name.endswith("_API_KEY")}
    env = {name: value for name, value in os.environ.items() if name not in keys}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        env={**env, "AGENTKIT_STORE": f"sqlite:///{tmp_path / 'agentkit.db'}"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


def test_there_are_examples() -> None:
    """One numbered script for each stage, and the embedded chatbot."""
    names = {path.name for path in SCRIPTS}
    assert {"01_define_tools.py", "04_run_an_agent.py", "assistant.py"} <= names
