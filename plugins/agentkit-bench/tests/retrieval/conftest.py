"""A small corpus of ours, and corpora that a test writes down."""

import gzip
import json
from pathlib import Path

import pytest

from agentkit_bench.retrieval import load_corpus

SAMPLE = Path(__file__).parent / "sample_corpus"


@pytest.fixture
def sample_files():
    """The paths of twelve tools, two of them of one name, and eight questions."""
    return SAMPLE / "tools.jsonl", SAMPLE / "queries.jsonl"


@pytest.fixture
def sample(sample_files):
    """The small corpus, tools of one name counted as one."""
    tools, queries = sample_files
    return load_corpus([tools], [queries], by="name")


@pytest.fixture
def written(tmp_path):
    """Writes records (or raw text) as lines of a file and gives its path."""

    def write(name, *records):
        text = "".join(
            (record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records
        )
        path = tmp_path / name
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write
