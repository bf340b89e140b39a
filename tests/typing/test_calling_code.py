"""The public API type-checks in the code of those who call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
API = "tests/typing/api.py"


def checked(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a checker from the project root."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.fixture(scope="module")
def pyright(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A strict configuration for pyright, or a skip where it cannot get its runtime."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    if checked("pyright", "--version").returncode:
        pytest.skip("pyright could not fetch the JavaScript runtime it needs")
    config = tmp_path_factory.mktemp("pyright") / "pyrightconfig.json"
    settings = {
        "include": [str(ROOT / API)],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "enableTypeIgnoreComments": False,
    }
    config.write_text(json.dumps(settings), encoding="utf-8")
    return config


@pytest.mark.long
def test_mypy_accepts_the_calling_code() -> None:
    """Under mypy --strict the types are what ``assert_type`` says, and misuse is caught."""
    done = checked("mypy", API)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
@pytest.mark.timeout(240)
def test_pyright_accepts_the_calling_code(pyright: Path) -> None:
    """Pyright, which editors use, agrees in strict mode."""
    done = checked("pyright", "-p", str(pyright))
    assert done.returncode == 0, done.stdout


def test_the_check_can_fail(tmp_path: Path) -> None:
    """Calling code with a wrong type is rejected."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from agentkit import Library\nversion: str = Library().version\n")
    done = checked("mypy", str(wrong))
    assert done.returncode == 1
    assert "Incompatible types in assignment" in done.stdout
