"""Corpora: files, splits, scores, public ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentkit.errors import DatasetError
from agentkit_bench.retrieval import (
    CorpusFiles,
    RetrievalQuery,
    find_method,
    load_corpus,
    measure_method,
)


def question(query_id="q", category=""):
    """A question of which only the id and the category matter."""
    return RetrievalQuery(query_id=query_id, text="?", gold=frozenset({"a"}), category=category)


def test_a_category_that_names_its_split_decides():
    """Corpora that come with a split keep it; others are split by the digest of the id."""
    assert question(category="dev/easy").split == "dev"
    assert question(category="test_in_domain/easy").split == "test"
    assert question("bfcl:simple_python_0").split == "dev"  # digests that end in 0 and 8
    assert question("bfcl:simple_python_1").split == "test"


WEATHER = {"id": "1", "name": "get_weather", "description": "Weather.", "parameters": {}}
HOURLY = {"id": "2", "name": "get_weather", "description": "Weather by the hour."}
POSTAGE = {"id": "3", "name": "postage", "description": "Price of a stamp.", "parameters": {}}
QUESTION = {"id": "q", "query": "Will it rain?", "gold_tools": ["2"]}


@pytest.mark.parametrize(
    ("by", "keys", "gold"),
    [("id", {"1", "2", "3"}, "2"), ("name", {"get_weather", "postage"}, "get_weather")],
)
def test_definitions_of_one_name_all_stay(written, by, keys, gold):
    """By id each is a tool of its own; by name any of them answers. Files may be compressed."""
    files = written("t.gz", WEATHER, HOURLY, POSTAGE), written("q.gz", QUESTION)
    corpus = load_corpus([files[0]], [files[1]], by=by)
    assert len(corpus.library) == 3
    assert set(corpus.keys.values()) == keys
    assert corpus.queries[0].gold == {gold}


def test_results_and_examples_are_read(written):
    """``output`` is the schema of the result; an example without arguments is arguments."""
    tool = WEATHER | {
        "output": {"type": "string"},
        "examples": [{"place": "Oslo"}, {"query": "Rain?", "arguments": {"place": "Bergen"}}, 3],
    }
    corpus = load_corpus([written("t", tool)], [written("q", QUESTION | {"gold": ["1"]})])
    (definition,) = corpus.library.definitions
    assert definition.signature.result == {"type": "string"}
    assert [(one.query, one.arguments) for one in definition.examples] == [
        ("", {"place": "Oslo"}),
        ("Rain?", {"place": "Bergen"}),
    ]


@pytest.mark.parametrize(
    ("tools", "queries", "place", "words"),
    [
        (["{"], [QUESTION], "t:1", "not JSON"),
        ([{"nom": "x"}], [QUESTION], "t:1", "needs a name"),
        ([WEATHER, WEATHER], [QUESTION], "t:2", "two tools have the id '1'"),
        ([WEATHER], ["", {"text": "?"}], "q:2", '"query"'),
        ([WEATHER], [{"query": "?"}], "q:1", "list of the ids or names"),
        ([], [QUESTION], "t", "0 tools"),
        ([WEATHER], [], "q", "0 questions"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(written, tools, queries, place, words):
    """An error names the file, the line and what it should hold."""
    with pytest.raises(DatasetError) as caught:
        load_corpus([written("t", *tools)], [written("q", *queries)])
    assert place in str(caught.value)
    assert words in str(caught.value)


def test_a_split_without_questions_is_refused(written):
    """There is nothing to measure then."""
    tools, queries = written("t", WEATHER), written("q", QUESTION | {"category": "test"})
    files = CorpusFiles(tools=(str(tools),), queries=(str(queries),), split="dev")
    with pytest.raises(DatasetError, match="split 'dev'"):
        files.load()


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
