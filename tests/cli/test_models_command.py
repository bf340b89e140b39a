"""``agentkit models``, with a plugin of the test's own found through its entry point."""

import sys

import pytest

PLUGIN = """
from pathlib import Path
from types import SimpleNamespace

from agentkit.fetch import cache_directory

INFO = SimpleNamespace(name="tiny", summary="A tiny one", size_bytes=2_000_000, licence="MIT")

def path(name):
    return cache_directory() / f"{name}.gguf"

def available():
    return (INFO,)

def installed():
    return (INFO,) if path("tiny").exists() else ()

def install(name, progress=None):
    path(name).parent.mkdir(parents=True, exist_ok=True)
    progress(1, 2)
    path(name).write_text("weights")
    progress(2, 2)
    return INFO
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed distribution that offers weights; no other plugin is visible."""
    folder = tmp_path / "site"
    info = folder / "tiny_weights-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "tiny_weights.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agentkit.weights]\na-tiny = tiny_weights\n")
    monkeypatch.syspath_prepend(str(folder))
    yield
    sys.modules.pop("tiny_weights", None)


def test_weights_are_installed_and_listed(plugin, invoke, as_json, tmp_path):
    """Install prints the path; list tells what is there, and in which file."""
    before = {row["name"]: row["path"] for row in as_json("models")}
    assert before["tiny"] is None
    result = invoke("models", "install", "tiny")
    assert result.stdout.strip() == str(tmp_path / "cache" / "tiny.gguf")
    assert "100%" in result.stderr
    assert as_json("models", "install", "tiny")["path"] == result.stdout.strip()
    listed = invoke("models")
    row = next(r for r in listed.stdout.splitlines() if r.startswith("tiny"))
    assert row.split()[:3] == ["tiny", "2", "MIT"]
    assert as_json("models")[0]["path"] == str(tmp_path / "cache" / "tiny.gguf")
