"""The default retriever keeps its quality on public catalogues."""

import os
from pathlib import Path

import pytest

from agentkit_bench.retrieval import find_method, load_corpus, measure_method

FLOORS = {
    "bfcl": {"recall@5": 0.86, "recall@32": 0.94},
    "seal_tools": {"recall@5": 0.86, "recall@32": 0.95},
    "nestful": {"recall@5": 0.45, "recall@32": 0.86},
}


@pytest.fixture
def public(project_root):
    """Loads a public corpus, tools of one name counted as one."""
    root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))

    def load(name):
        folder = root / name
        if not folder.is_dir():
            pytest.skip(f"no corpus {name!r} in {root}; name the folder in AGENTKIT_CORPORA")
        return load_corpus([folder / "tools.jsonl.gz"], [folder / "retrieval.jsonl.gz"], by="name")

    return load


@pytest.mark.corpora
@pytest.mark.parametrize("name", FLOORS)
async def test_quality_on_public_corpora(public, name):
    """Ranking does not fall below what was measured, less the error of a sample."""
    report = await measure_method(find_method("default"), public(name).sample(200))
    figures = report.to_json()
    low = {
        figure: figures[figure] for figure, floor in FLOORS[name].items() if figures[figure] < floor
    }
    assert low == {}
    assert figures["tokens_max"] <= 1600
    assert figures["name_hit@1"] == 1.0
