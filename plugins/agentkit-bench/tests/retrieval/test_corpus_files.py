"""Reading a corpus: files, names that occur twice, gold, and what is wrong with a file."""

import json

import pytest

from agentkit.errors import DatasetError
from agentkit_bench.retrieval import load_corpus

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


def test_seventy_definitions_of_one_name_are_kept(written):
    """Marks behind the name keep any number of definitions apart, and add no search term."""
    copies = [WEATHER | {"id": str(number)} for number in range(70)]
    corpus = load_corpus([written("t", *copies)], [written("q", QUESTION)])
    assert len(corpus.library) == 70
    assert set(corpus.names.values()) == {"get_weather"}
    assert max(map(len, corpus.names)) <= len("get_weather") + 7


def test_several_files_are_one_catalogue(written):
    """Catalogues can be pooled, and questions too."""
    corpus = load_corpus(
        [written("a", WEATHER), written("b", POSTAGE)],
        [written("q", QUESTION | {"gold_tools": ["1"]}), written("r", QUESTION | {"gold": ["3"]})],
    )
    assert [query.gold for query in corpus.queries] == [{"1"}, {"3"}]


def test_gold_may_be_names_and_ids_may_be_absent(written):
    """The smallest corpus has names only."""
    tool = {"name": "postage", "description": "Price of a stamp."}
    corpus = load_corpus(
        [written("t", tool)], [written("q", {"query": "stamp?", "gold": "postage"})]
    )
    assert corpus.queries[0].gold == {"postage"}
    assert corpus.queries[0].query_id == "stamp?"


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


def test_unknown_gold_is_counted(written):
    """A gold tool that is in no file does not stop the measurement, and is reported."""
    questions = [QUESTION | {"gold": ["1", "gone"]}, QUESTION | {"gold": ["lost"]}]
    corpus = load_corpus([written("t", WEATHER)], [written("q", *questions)])
    assert [query.gold for query in corpus.queries] == [{"1"}, set()]
    assert corpus.unknown_gold == 2


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
