"""In the texts of public data sets next to nothing is found that is not what it is called."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentkit.episodes.redaction import PATTERNS

MOST = {  # of the tools of ToolUniverse: real interfaces, full of versions, dates and accessions
    "email": 6,
    "ipv4": 6,
    "secret": 2,
}


def texts(value: object) -> Iterator[str]:
    """Every text of JSON data, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for part in pair for text in texts(part))
    elif isinstance(value, list):
        yield from (text for part in value for text in texts(part))


def found_in(root: Path, name: str) -> Counter[str]:
    """How often each pattern finds something in the distinct texts of a file."""
    path = root / name
    if not path.exists():
        pytest.skip("the public corpora are not beside the checkout")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        distinct = {text for line in file for text in texts(json.loads(line))}
    return Counter(
        name for text in distinct for name, one in PATTERNS.items() for _ in one.spans(text)
    )


@pytest.fixture
def root(project_root):
    """Where the corpora are."""
    return Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))


@pytest.mark.corpora
def test_nothing_is_found_in_word_problems(root):
    """Thousands of sums with prices, times, counts and names hold nothing of any sort."""
    assert found_in(root, "gsm8k/problems.jsonl.gz") == {}


@pytest.mark.corpora
def test_next_to_nothing_is_found_in_descriptions_of_tools(root):
    """Real interfaces of science give addresses of people and computers, and no false cards."""
    found = found_in(root, "tooluniverse/tools.jsonl.gz")
    assert all(count <= MOST.get(name, 0) for name, count in found.items()), found
