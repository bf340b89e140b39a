"""``agentkit bench retrieval``."""

import json

import pytest

TOOLS = [
    {"id": "1", "name": "tide_table", "description": "High and low water at a harbour."},
    {"id": "2", "name": "ferry_times", "description": "Departures of the ferry."},
    {"id": "3", "name": "postage", "description": "Price of a stamp."},
]
QUESTIONS = [
    {"id": "a", "query": "low water at the harbour", "gold_tools": ["1"], "category": "dev"},
    {"id": "b", "query": "when does the ferry leave", "gold": ["2"], "category": "test"},
    {"id": "c", "query": "how much is a stamp", "gold": ["3"], "category": "test"},
]


@pytest.fixture
def bench(invoke, tmp_path):
    """Runs the command on three tools and three questions."""

    def lines(records):
        return "".join(json.dumps(record) + "\n" for record in records)

    (tmp_path / "tools.jsonl").write_text(lines(TOOLS))
    (tmp_path / "queries.jsonl").write_text(lines(QUESTIONS))

    def run(*options):
        files = ("--catalogue", "tools.jsonl", "--queries", "queries.jsonl")
        return invoke("bench", "retrieval", *files, *options)

    return run


def test_json_is_one_object_a_method(bench, tmp_path):
    """Each line of stdout is a record with the figures of one method; --output holds the same."""
    result = bench("--methods", "default,lexical", "--json", "--output", "out.jsonl")
    assert result.exit_code == 0, result.stderr
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["method"] for record in records] == ["default", "lexical"]
    wanted = {"recall@1", "recall@5", "recall@10", "recall@32", "full@10", "tokens"}
    wanted |= {"cpu_p50_ms", "cpu_p99_ms", "memory_mb"}
    for record in records:
        assert wanted <= record.keys()
        assert record["recall@1"] == record["full@10"] == 1.0
        assert record["questions"] == record["tools"] == 3
        assert (record["by"], record["split"], record["unknown_gold"]) == ("id", "all", 0)
    assert records[1]["versus"]["method"] == "default"
    assert (tmp_path / "out.jsonl").read_text() == result.stdout


def test_a_method_that_lacks_a_model_is_left_out_or_refused(bench):
    """By default what can not run is named; asked for by name it is an error."""
    refused = bench("--methods", "paper")
    assert refused.exit_code == 2
    assert "--model NAME" in refused.stderr
    left_out = bench("--json")
    assert "Leaving out planned, paper; needed is a language model" in left_out.stderr
    methods = {json.loads(line)["method"] for line in left_out.stdout.splitlines()}
    assert {"default", "lexical", "flat_library"} <= methods
    assert "paper" not in methods


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--methods", "magic"), "there is no method 'magic'; there are: default"),
        (("--methods", "lexical", "--output", "no_folder/out.jsonl"), "no_folder"),
    ],
)
def test_misuse_is_explained(bench, options, words):
    """What can not work ends with status 2 and says why."""
    result = bench(*options)
    assert result.exit_code == 2
    assert words in result.stderr


OWN = """
from agentkit.retrieval import CascadeRetriever

fixed = CascadeRetriever()

def made(shortlist, offer, token_budget):
    return CascadeRetriever(shortlist=shortlist, offer=offer, token_budget=token_budget)

def bare():
    return fixed

number = 3
"""


@pytest.mark.parametrize("name", ["own_retrievers:fixed", "own_retrievers:made"])
def test_a_retriever_of_ones_own_is_measured(bench, tmp_path, name):
    """module:attribute is a retriever, or a function that makes one within limits."""
    (tmp_path / "own_retrievers.py").write_text(OWN)
    result = bench("--methods", name, "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert (record["method"], record["recall@1"]) == (name, 1.0)
    table = bench("--methods", name, "--split", "test").stdout.splitlines()
    assert table[0].split()[:6] == ["method", "R@1", "R@5", "R@10", "R@32", "full@10"]
    assert table[2].split()[:3] == [name, "100.0", "100.0"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own_retrievers:absent", "absent"),
        ("own_retrievers:bare", "shortlist, offer and token_budget"),
        ("own_retrievers:number", "is a int and no retriever"),
    ],
)
def test_what_is_no_retriever_is_refused(bench, tmp_path, name, words):
    """A module, name or object that can not be measured is misuse, and is named."""
    (tmp_path / "own_retrievers.py").write_text(OWN)
    result = bench("--methods", name)
    assert result.exit_code == 2
    assert words in result.stderr


def test_settings_are_chosen_on_the_corpora_that_are_not_reported(invoke, tmp_path):
    """Each folder is left out once; its block names what the others chose and every method."""
    for name in ("harbour", "post"):
        (tmp_path / name).mkdir()
        for file, records in (("tools.jsonl", TOOLS), ("retrieval.jsonl", QUESTIONS)):
            lines = "".join(json.dumps(record) + "\n" for record in records)
            (tmp_path / name / file).write_text(lines)
    folders = ("--leave-one-out", "harbour", "--leave-one-out", "post")
    result = invoke("bench", "retrieval", *folders, "--methods", "lexical")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("together") == 2
    assert result.stdout.count("| lexical | 1.000 | 1.000 |") == 2
    assert invoke("bench", "retrieval", *folders[:2]).exit_code == 2
    assert "--leave-one-out FOLDER" in invoke("bench", "retrieval").stderr
