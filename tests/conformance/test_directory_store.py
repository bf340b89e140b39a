"""``dir:PATH`` passes the shipped suites, with YAML and with JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.store_conformance import ServedStoreConformance

from agentkit.testing.conformance.formats import EditDefinitions
from agentkit.testing.conformance.tools import ToolStoreConformance


class TestDirectoryStore(ServedStoreConformance):
    """A folder: everything applies."""

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"dir:{tmp_path / 'library'}"

    @pytest.fixture
    def newer_store_url(self, tmp_path: Path) -> str:
        folder = tmp_path / "newer"
        folder.mkdir()
        (folder / "log.jsonl").write_text(json.dumps({"format": 99, "news": []}) + "\n")
        return f"dir:{folder}"

    @pytest.fixture
    def raw_contents(self) -> Callable[[str], object]:
        def read(url: str) -> object:
            folder = Path(url.removeprefix("dir:"))
            return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

        return read

    @pytest.fixture
    def edit_definitions(self) -> EditDefinitions:
        def edit_all(url: str, edit: Callable[[str], str]) -> None:
            folder = Path(url.removeprefix("dir:"))
            log = folder / "log.jsonl"
            lines = log.read_text().splitlines()
            for row in (row for line in lines for row in json.loads(line).get("upserts", ())):
                text = json.dumps(row["definition"], ensure_ascii=False)
                lines = [line.replace(text, edit(text)) for line in lines]
            log.write_text("\n".join([*lines, ""]))

        return edit_all


class TestDirectoryStoreOfJson(ToolStoreConformance):
    """A folder of JSON files keeps tools alike; events and episodes do not know the difference."""

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"dir:{tmp_path / 'library'}?format=json"
