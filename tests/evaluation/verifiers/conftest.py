"""Episodes to judge, made of calls and answers."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from support.judging import call, episode, returned  # noqa: F401 - fixtures


@pytest.fixture
def corpus_rows(project_root):
    """Reads the problems of a public corpus; skips the test when the corpus is not there."""
    root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))

    def rows(name):
        path = root / name / "problems.jsonl.gz"
        if not path.is_file():
            pytest.skip(f"no corpus {name!r} in {root}; name the folder in AGENTKIT_CORPORA")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return rows
