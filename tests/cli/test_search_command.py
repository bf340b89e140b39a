"""``agentkit search``."""

import json

import pytest


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
