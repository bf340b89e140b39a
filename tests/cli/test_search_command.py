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


def test_nothing_found_is_said(invoke):
    """A query that matches nothing prints no table and says so."""
    result = invoke("search", "xyzzy")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "matches" in result.stderr
