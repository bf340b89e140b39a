"""``agentkit search``."""

import json

import pytest

from agentkit.retrieval.word_vectors import packaged_folder


@pytest.fixture(autouse=True)
def library(invoke, tmp_path):
    """Three tools to find."""
    entries = [
        {"name": "tide_table", "description": "High and low water at a harbour."},
        {"name": "ferry_times", "description": "Departures of the ferry between harbours."},
        {"name": "postage", "description": "Price of a stamp."},
    ]
    (tmp_path / "tools.json").write_text(json.dumps(entries))
    invoke("tools", "import", "tools.json")


def test_the_best_tool_comes_first(invoke):
    """The table ranks tools and marks those that would be offered in full."""
    result = invoke("search", "When does the ferry leave?")
    assert result.exit_code == 0
    first = result.stdout.splitlines()[2]
    assert first.split()[:3] == ["1", "*", "ferry_times"]
    assert "library version 1" in result.stderr


def test_json_holds_scores_and_what_is_offered(as_json):
    """--json gives the ranking with scores, and the names offered in full."""
    found = as_json("search", "low water at the harbour", "--limit", "1")
    assert [hit["name"] for hit in found["hits"]] == ["tide_table"]
    assert "tide_table" in found["offered"]
    assert found["library_version"] == 1
    assert found["tokens"] > 0


@pytest.mark.parametrize(
    ("query", "told"),
    [("xyzzy", "No tool has: xyzzy"), ("", "no words"), ("\U0001f389", "no words")],
)
def test_why_nothing_is_found_is_said(invoke, query, told):
    """A person reads which words no tool has, or that there are none."""
    result = invoke("search", query)
    assert result.exit_code == 0
    assert told in result.stderr


def test_a_search_makes_no_store(invoke, tmp_path):
    """A misspelt store is an error, however its URL is written, and no file appears."""
    for url in ("absent.db", "sqlite:///absent.db", "SQLITE:///absent.db"):
        result = invoke("search", "ferry", "--store", url)
        assert result.exit_code == 2
        assert "there is no store" in result.stderr
    assert not (tmp_path / "absent.db").exists()


def test_an_explanation_shows_stages_scores_and_reasons(invoke):
    """--explain prints what each stage left and where a tool's score comes from."""
    result = invoke("search", "When does the ferry leave?", "--explain")
    assert result.exit_code == 0, result.stderr
    stages, _, scores = result.stdout.partition("of which")
    assert stages.splitlines()[0].split() == ["stage", "tools", "left", "tokens", "CPU", "ms"]
    assert "offer, as schemas" in stages
    first = scores.splitlines()[2]
    assert "ferry_times" in first
    assert "shares ferry" in first


def test_an_explanation_as_json_names_each_part_of_a_score(as_json):
    """The fields of a hit add up to its score, and stages carry survivors, tokens and CPU."""
    found = as_json("search", "low water at the harbour", "--explain")
    for hit in found["hits"]:
        assert sum(hit["fields"].values()) == pytest.approx(hit["score"], abs=0.001)
    assert {"stage", "survivors", "tokens", "cpu_ms"} == found["stages"][0].keys()
    without_vectors = any("agentkit-evolve[vectors]" in note for note in found["notes"])
    assert without_vectors == (packaged_folder() is None)
    assert len(found["notes"]) == without_vectors
