"""The store that docs/write-a-store.md shows is installed as a plugin and passes the suites."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agentkit.testing import StoreConformance


@pytest.fixture(scope="session")
def installed(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's store as a module and the metadata that installing it makes."""
    page = (project_root / "docs" / "write-a-store.md").read_text(encoding="utf-8")
    code = next(
        c
        for c in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        if "class " in c
    )
    entry_point = re.search(r'^(folder) = "(.*)"$', page, re.MULTILINE)
    assert entry_point is not None
    folder = tmp_path_factory.mktemp("site")
    (folder / "folder_store.py").write_text(code, encoding="utf-8")
    metadata = folder / "folder_store-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: folder-store\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[agentkit.stores]\n{entry_point[1]} = {entry_point[2]}\n"
    )
    return folder


class TestExampleStore(StoreConformance):
    """A newcomer's store: everything applies, in other processes too."""

    @pytest.fixture
    def store_url(self, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.syspath_prepend(installed)
        search_path = [str(installed), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, search_path)))
        return f"folder:{tmp_path / 'library'}"
