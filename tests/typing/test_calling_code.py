"""The public API type-checks in the code of those who call it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
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
def pyright(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs pyright in strict mode over a text, or a skip where it cannot get its runtime."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    if checked("pyright", "--version").returncode:
        pytest.skip("pyright could not fetch the JavaScript runtime it needs")

    def check(text: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path_factory.mktemp("pyright")
        (folder / "calling.py").write_text(text, encoding="utf-8")
        settings = {
            "include": ["calling.py"],  # relative: an absolute path is ignored
            "extraPaths": [str(ROOT)],
            "typeCheckingMode": "strict",
            "reportUnnecessaryTypeIgnoreComment": "error",
            "enableTypeIgnoreComments": False,
        }
        (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
        return checked("pyright", "-p", str(folder))

    return check


@pytest.mark.long
def test_mypy_accepts_the_calling_code() -> None:
    """Under mypy --strict the types are what ``assert_type`` says, and misuse is caught."""
    done = checked("mypy", API)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
@pytest.mark.timeout(240)
def test_pyright_accepts_the_calling_code(
    pyright: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    """Pyright, which editors use, agrees in strict mode."""
    done = pyright((ROOT / API).read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stdout


@pytest.mark.long
@pytest.mark.timeout(240)
def test_pyright_can_fail(pyright: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    """Pyright rejects calling code with a wrong type."""
    done = pyright("from agentkit import Library\nversion: str = Library().version\n")
    assert done.returncode == 1, done.stdout
    assert "reportAssignmentType" in done.stdout


def test_the_check_can_fail(tmp_path: Path) -> None:
    """Calling code with a wrong type is rejected."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from agentkit import Library\nversion: str = Library().version\n")
    done = checked("mypy", str(wrong))
    assert done.returncode == 1
    assert "Incompatible types in assignment" in done.stdout
