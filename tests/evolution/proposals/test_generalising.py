"""Values of episodes do not turn up in the words that everybody reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Library, ToolDefinition
from agentkit.evolution.proposers.streams import generalises
from agentkit.evolution.validation.report import ProposedChange
from agentkit.tools.rules import OneOf

SEARCH = ToolDefinition.from_schema(
    "search",
    "Search cars such as the BMW X3.",
    {"type": "object", "properties": {"query": {"type": "string", "description": "A term."}}},
)


def codes(text, values, stated=()):
    """What the check says of a new text of the parameter."""
    words = replace(SEARCH.description, parameters={"query": text})
    change = ProposedChange(
        base=SEARCH, candidate=replace(SEARCH, description=words), library=Library([SEARCH])
    )
    return [(failed.code, failed.field) for failed in generalises(values, stated=stated)(change)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Write Passat380.", "Passat380"),
        ("Write PASSAT380 in full.", "Passat380"),
        ("Use 31 months.", "31"),
        ("Ask Ms. Hansen-Meyer first.", "Hansen-Meyer"),
        ("Use the value 'blue'.", "blue"),
        ("It costs 19.99 a month.", "19.99"),
        ("Write 帕萨特380 in full.", "帕萨特380"),
    ],
)
def test_values_of_episodes_are_found(text, value):
    """Names, numbers and quoted words, whatever their case."""
    assert codes(text, [value]) == [("instance_value", "parameters.query")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Use the latest model year.", "latest"),  # an ordinary word, not quoted
        ("Write 2031 in full.", "31"),
        ("Write 31.5 in full.", "31"),
        ("The exact model, like a BMW X3.", "BMW X3"),  # stands in the definition already
        ("A Passat3801 is another car.", "Passat380"),
    ],
)
def test_what_is_no_repetition(text, value):
    """Ordinary words, parts of other values, and what the tool said before."""
    assert codes(text, [value]) == []


def test_what_the_tool_states_itself():
    """A value from the tool's own list may stand in its text."""
    assert codes("One of 36, 48, 60.", ["36"]) != []
    assert codes("One of 36, 48, 60.", ["36"], stated=["36", "48", "60"]) == []


def test_rules_are_looked_at_too():
    """A list of values as data repeats an episode as much as words do."""
    rule = OneOf(parameter="query", values=("passat", "golf"))
    specification = replace(SEARCH.specification, rules=(rule,))
    change = ProposedChange(
        base=SEARCH,
        candidate=replace(SEARCH, specification=specification),
        library=Library([SEARCH]),
    )
    [failed] = generalises(["golf"])(change)
    assert failed.field == "rules[0]"
