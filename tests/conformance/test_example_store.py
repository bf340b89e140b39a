"""The distribution that docs/write-a-store.md shows is whole, and its own tests pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # starts a pytest of its own for each

FILES = {
    "folder_store.py",
    "pyproject.toml",
    "tests/conftest.py",
    "tests/test_folder_store.py",
}


def files_of(page: str) -> dict[str, str]:
    """The blocks of a page that begin with the name of a file, by that name."""
    blocks = re.findall(
        r"^```\w+(?: \{no-run\})?\n# (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    return dict(blocks)


@pytest.fixture
def distribution(project_root: Path, tmp_path: Path) -> Path:
    """The page's files in a folder, with the metadata that installing them makes."""
    page = (project_root / "docs" / "write-a-store.md").read_text(encoding="utf-8")
    files = files_of(page)
    assert set(files) == FILES
    folder = tmp_path / "agentkit-folder"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    metadata = folder / f"agentkit_folder-{project['version']}.dist-info"
    metadata.mkdir()
    about = {"Metadata-Version": "2.1", "Name": project["name"], "Version": project["version"]}
    (metadata / "METADATA").write_text("".join(f"{k}: {v}\n" for k, v in about.items()))
    points = project["entry-points"]["agentkit.stores"]
    lines = ["[agentkit.stores]", *(f"{name} = {value}" for name, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.mark.timeout(600)
def test_its_tests_pass(distribution):
    """The suite runs with one fixture and all of it passes, but what the store does not have."""
    search_path = [str(distribution), os.environ.get("PYTHONPATH", "")]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-rs", "-p", "no:cacheprovider", "tests"],
        cwd=distribution,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, search_path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    skipped = set(re.findall(r"^SKIPPED \[\d+\] \S+ (.*)$", ran.stdout, re.MULTILINE))
    assert skipped == {
        "nobody edits this store behind its back (fixture edit_definitions)",
        "this store has no check()",
        "this store has no older shape (fixture oldest_store_url)",
        "no store of a newer release was made (fixture newer_store_url)",
    }
