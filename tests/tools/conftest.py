"""Where the large public corpora are, when they are."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def corpus_rows(project_root: Path) -> Callable[[str], list[dict[str, Any]]]:
    """Reads the tools of a public corpus; skips the test when the corpus is not there."""
    root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))

    def rows(name: str) -> list[dict[str, Any]]:
        path = root / name / "tools.jsonl.gz"
        if not path.is_file():
            pytest.skip(f"no corpus {name!r} in {root}; name the folder in AGENTKIT_CORPORA")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return rows
