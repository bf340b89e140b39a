"""The doctor on two public catalogues, where they are beside the checkout."""

import gzip
import json
import os

import pytest

from agentkit.evaluation.doctor import Catalogue, examine
from agentkit.tools.sources.json_records import definitions_from_json

EXPECTED = {
    "bfcl": {"duplicate": 300, "near_duplicate": 50, "shared_opening": 10, "refused_name": 1200},
    "tooluniverse": {"refused_root": 25, "says_broken": 5, "siblings": 15, "unaffordable": 15},
}
"""The fewest findings of some kinds, a little below what was found in November 2026."""


@pytest.fixture
def public(project_root):
    """Reads the definitions of a public catalogue."""
    root = os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data")

    def read(name):
        path = project_root / root / name / "tools.jsonl.gz"
        if not path.is_file():
            pytest.skip(f"no catalogue at {path}; name the folder in AGENTKIT_CORPORA")
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            return definitions_from_json([json.loads(row) for row in rows]).definitions

    return read


@pytest.mark.corpora
@pytest.mark.parametrize("name", EXPECTED)
def test_known_faults_are_found(public, name):
    """What was found and read once is found again."""
    checkup = examine(Catalogue.of(public(name)), codes=list(EXPECTED[name]))
    found = {kind.code: len(group) for kind, group in checkup.grouped()}
    low = {code: found.get(code, 0) for code, n in EXPECTED[name].items() if found.get(code, 0) < n}
    assert low == {}
