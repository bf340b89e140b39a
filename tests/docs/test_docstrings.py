"""Examples in docstrings run, in the runtime and in its plugins."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
    for folder in [ROOT / "agentkit", *sorted(ROOT.glob("plugins/*/agentkit_*"))]
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
