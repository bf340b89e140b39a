"""The pages about training run where training is installed, as all pages run without it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RUNNER = ROOT / "tests" / "docs" / "test_pages.py"
FLAG = "{interop=agentkit_training}"
PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if FLAG in path.read_text("utf-8")]


@pytest.fixture(scope="module")
def pages():
    """The runner of pages."""
    spec = importlib.util.spec_from_file_location("agentkit_pages", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["agentkit_pages"] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_page_runs(page, pages, tmp_path, monkeypatch):
    """What a page shows is what happens."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTKIT_STORE", f"sqlite:///{tmp_path / 'agentkit.db'}")
    monkeypatch.setenv("COLUMNS", "100")
    pages.run_page(page, tmp_path, weights=False, interop="agentkit_training")
