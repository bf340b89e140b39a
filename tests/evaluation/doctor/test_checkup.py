"""A whole check-up: order, filters, and catalogues that are hard to look at."""

import random

import pytest

from agentkit import ToolDefinition
from agentkit.errors import UsageError
from agentkit.evaluation.doctor import CHECKS, KINDS, Catalogue, examine
from agentkit.testing import sample_library


def sick_tools():
    """Tools with many findings, of different names."""
    schema = {"properties": {"x": {}, "y": {"type": "array"}}, "required": ["z"]}
    opening = "This tool belongs to a system of many tools."
    return [
        ToolDefinition.from_schema(name, text, schema)
        for name, text in [
            ("get_user", "Get user."),
            ("getUser", ""),
            ("print", f"{opening} <p>Prints a text</p> on paper."),
            ("find_river", f"{opening} Rivers of a country by their length."),
            ("find_song", f"{opening} Songs of an artist, by the year."),
            ("find_song_2", f"{opening} Songs of an artist, by the year."),
        ]
    ]


def test_the_order_of_the_tools_changes_nothing():
    """Every permutation gives the same check-up."""
    tools = sick_tools()
    expected = examine(Catalogue.of(tools)).to_json()
    for seed in range(4):
        random.Random(seed).shuffle(tools)
        assert examine(Catalogue.of(tools)).to_json() == expected


def test_copies_get_the_same_names_in_any_order():
    """Where entries share a name, who is called what does not depend on the order."""
    tools = [ToolDefinition.from_schema("find", f"Find {what}.", {}) for what in "abc"]
    names = [[d.digest for d in Catalogue.of(order).definitions] for order in (tools, tools[::-1])]
    assert names[0] == names[1]


def test_the_worst_come_first():
    """Errors stand before warnings, these before notes."""
    severities = [one.kind.severity for one in examine(Catalogue.of(sick_tools())).findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert set(severities) == {"error", "warning", "note"}


def test_filters_show_a_part_of_the_whole():
    """What is found with a filter is what is found without it, the rest left out."""
    catalogue = Catalogue.of(sick_tools())
    every = examine(catalogue).findings
    for code in {one.kind.code for one in every}:
        found = examine(catalogue, codes=[code]).findings
        assert [one.what for one in found] == [o.what for o in every if o.kind.code == code]
    for name in catalogue.library.tools:
        found = {(one.kind.code, one.tools) for one in examine(catalogue, tools=[name]).findings}
        about = {(one.kind.code, one.tools) for one in every if one.tools[0] == name}
        assert about <= found


def test_unknown_filters_are_misuse():
    """A code or a tool that is not there is told by name."""
    catalogue = Catalogue.of(sick_tools())
    with pytest.raises(UsageError, match="'no_such'"):
        examine(catalogue, codes=["no_such"])
    with pytest.raises(UsageError, match="'nobody'"):
        examine(catalogue, tools=["nobody"])


def test_every_kind_is_explained_and_belongs_to_one_check():
    """Codes are unique; each says why it matters and what to do."""
    listed = [kind.code for check in CHECKS for kind in check.kinds]
    assert len(listed) == len(set(listed)) == len(KINDS)
    for kind in KINDS.values():
        assert kind.title
        assert kind.why.endswith(".")
        assert kind.advice.endswith(".")


def test_findings_stay_in_what_their_check_declares():
    """No check reports a kind that it does not list."""
    catalogue = Catalogue.of(sick_tools())
    for check in CHECKS:
        assert {one.kind for one in check.run(catalogue)} <= set(check.kinds)


def test_an_empty_catalogue_is_healthy():
    """There is nothing to find in nothing."""
    checkup = examine(Catalogue.of([]))
    assert (checkup.findings, checkup.tokens, checkup.weights) == ((), 0, ())


def test_thousands_of_copies_are_survived():
    """Ten thousand identical entries give a few findings, not millions."""
    definition = ToolDefinition.from_schema("find", "Find a city by its name.", {})
    checkup = examine(
        Catalogue.of([definition] * 10_000), codes=["duplicate", "same_name", "alike_names"]
    )
    assert len(checkup.findings) == 2
    assert all(len(one.tools) == 10_000 for one in checkup.findings)


def test_deep_and_recursive_schemas_are_survived():
    """References are not followed, and depth costs no stack."""
    deep = {"type": "string"}
    for _ in range(90):
        deep = {"type": "object", "properties": {"inner": deep}}
    tree = {"$ref": "#/$defs/T"}
    schema = {
        "type": "object",
        "properties": {"deep": deep, "tree": tree},
        "$defs": {"T": {"type": "object", "properties": {"tree": tree}}},
    }
    checkup = examine(Catalogue.of([ToolDefinition.from_schema("t", "Walk a tree.", schema)]))
    assert checkup.tokens > 0


def test_our_own_sample_has_no_errors():
    """The library that ships with the doubles is in order."""
    checkup = examine(Catalogue.of(sample_library().definitions))
    assert [one.what for one in checkup.findings if one.kind.severity == "error"] == []
