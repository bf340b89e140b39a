"""The examples of the repository and of docstrings run as a reader would run them: offline, in seconds."""

from __future__ import annotations

import doctest
import importlib
import os
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SCRIPTS = [  # the modules beside a script in a folder of its own are imported by it
    path
    for path in sorted(EXAMPLES.rglob("*.py"))
    if path.parent == EXAMPLES or "__main__" in path.read_text()
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_example_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script under examples/ succeeds without key, network or input, and prints something."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENTKIT_STORE", f"sqlite:///{tmp_path / 'agentkit.db'}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [str(path)])
    before = set(sys.modules)
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        for name in set(sys.modules) - before:  # those that lie beside the script
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(EXAMPLES)):
                del sys.modules[name]
    assert capsys.readouterr().out.strip()


def test_there_are_examples() -> None:
    """One numbered script for each stage, and the embedded chatbot."""
    names = {path.name for path in SCRIPTS}
    assert {"01_define_tools.py", "04_run_an_agent.py", "assistant.py"} <= names


ROOT_docstrings = Path(__file__).resolve().parents[2]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules_with_examples(folder: Path) -> list[str]:
    """Dotted names of the modules below a package folder that show an example."""
    return sorted(
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in folder.rglob("*.py")
        if ">>> " in path.read_text(encoding="utf-8")
    )


NAMES = [
    name
    for folder in [
        ROOT_docstrings / "agentkit",
        *sorted(ROOT_docstrings.glob("plugins/*/agentkit_*")),
    ]
    for name in modules_with_examples(folder)
]


@pytest.mark.parametrize("name", NAMES)
def test_examples_hold(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a docstring shows is what happens."""
    if not name.startswith("agentkit."):
        pytest.importorskip(name.split(".", maxsplit=1)[0], reason="the plugin is not installed")
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert outcome.failed == 0, capsys.readouterr().out
    assert outcome.attempted > 0


def test_the_check_can_fail(capsys: pytest.CaptureFixture[str]) -> None:
    """A docstring whose example gives another result is reported."""
    module = ModuleType("sample", ">>> 1 + 1\n3\n")
    assert doctest.testmod(module, optionflags=OPTIONS).failed == 1
    assert "Expected:\n    3" in capsys.readouterr().out
