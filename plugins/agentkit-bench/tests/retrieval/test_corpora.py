"""Corpora: files, splits, scores, public ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import strategies as st

from agentkit.errors import DatasetError
from agentkit_bench.retrieval import RetrievalQuery, find_method, load_corpus, measure_method
from agentkit_bench.retrieval.scores import (
    recall_at,
    reciprocal_rank,
)


def question(query_id="q", category=""):
    """A question of which only the id and the category matter."""
    return RetrievalQuery(query_id=query_id, text="?", gold=frozenset({"a"}), category=category)


def test_a_category_that_names_its_split_decides():
    """Corpora that come with a split keep it."""
    assert question(category="dev/easy").split == "dev"
    assert question(category="test_in_domain/easy").split == "test"


def test_other_questions_are_split_by_their_id():
    """The digest of an id is the same on every machine; those of these end in 0 and 8."""
    assert question("bfcl:simple_python_0").split == "dev"
    assert question("bfcl:simple_python_1").split == "test"


keys = st.sampled_from("abcdefgh")


def test_recall_and_rank_by_hand():
    """Two of three within four; the first right one is second."""
    ranked = ["x", "a", "y", "b", "c"]
    assert recall_at({"a", "b", "c"}, ranked, 4) == pytest.approx(2 / 3)
    assert reciprocal_rank({"a", "b"}, ranked) == 0.5
    assert reciprocal_rank({"z"}, ranked) == 0.0


WEATHER = {"id": "1", "name": "get_weather", "description": "Weather.", "parameters": {}}
HOURLY = {"id": "2", "name": "get_weather", "description": "Weather by the hour."}
POSTAGE = {"id": "3", "name": "postage", "description": "Price of a stamp.", "parameters": {}}
QUESTION = {"id": "q", "query": "Will it rain?", "gold_tools": ["2"]}


def test_plain_and_compressed_files_hold_the_same(written):
    """A name that ends in .gz is decompressed; the rest is equal."""
    plain = load_corpus([written("t.jsonl", WEATHER, POSTAGE)], [written("q.jsonl", QUESTION)])
    packed = load_corpus(
        [written("t.jsonl.gz", WEATHER, POSTAGE)], [written("q.jsonl.gz", QUESTION)]
    )
    assert packed.library.digest == plain.library.digest
    assert packed.queries == plain.queries


def test_definitions_of_one_name_stay_apart_by_id(written):
    """Told apart by id, each definition is a tool of its own and gold names one of them."""
    corpus = load_corpus([written("t", WEATHER, HOURLY, POSTAGE)], [written("q", QUESTION)])
    assert len(corpus.library) == 3
    assert set(corpus.keys.values()) == {"1", "2", "3"}
    assert corpus.queries[0].gold == {"2"}


def test_definitions_of_one_name_count_as_one_by_name(written):
    """Told apart by name, all stay in the library, but any of them answers."""
    corpus = load_corpus(
        [written("t", WEATHER, HOURLY, POSTAGE)], [written("q", QUESTION)], by="name"
    )
    assert len(corpus.library) == 3
    assert set(corpus.keys.values()) == {"get_weather", "postage"}
    assert corpus.queries[0].gold == {"get_weather"}


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


def test_questions_without_gold_are_left_out(written):
    """Where nothing is to be found, finding can not be measured."""
    corpus = load_corpus(
        [written("t", WEATHER)], [written("q", QUESTION | {"gold": []}, QUESTION | {"gold": ["1"]})]
    )
    assert len(corpus.queries) == 1


@pytest.mark.parametrize(
    ("tools", "queries", "place", "words"),
    [
        (["{"], [QUESTION], "t:1", "not JSON"),
        ([WEATHER, "[1]"], [QUESTION], "t:2", "one JSON object a line"),
        ([{"nom": "x"}], [QUESTION], "t:1", "needs a name"),
        ([WEATHER, WEATHER], [QUESTION], "t:2", "two tools have the id '1'"),
        ([WEATHER], ["", {"text": "?"}], "q:2", '"query"'),
        ([WEATHER], [{"query": "?"}], "q:1", "list of the ids or names"),
        ([WEATHER], [{"query": "?", "gold": [1]}], "q:1", "list of the ids or names"),
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


def test_files_that_can_not_be_read_are_named(written, tmp_path):
    """A missing file, one that is not compressed though its name says so, and a torn one."""
    tools = written("t.jsonl", WEATHER)
    mislabelled = tmp_path / "q.jsonl.gz"
    mislabelled.write_text(json.dumps(QUESTION))
    torn = written("torn.jsonl.gz", *[QUESTION] * 500)
    torn.write_bytes(torn.read_bytes()[:-20])
    for path in (tmp_path / "missing", mislabelled, torn):
        with pytest.raises(DatasetError, match=path.name):
            load_corpus([tools], [path])


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
