"""A change of a tool's text is told in one line, with what was there and what is there now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import ToolDefinition
from agentkit_training.coevolution.library_round import told_change


@pytest.fixture
def lamp():
    return ToolDefinition.from_schema(
        "lamp",
        "Switch a lamp.",
        {"type": "object", "properties": {"room": {"description": "Which room."}}},
    )


def described(definition, **changes):
    return replace(definition, description=replace(definition.description, **changes))


def test_a_text_is_told_from_where_it_differs(lamp):
    """The start that both have in common is left out, but for two words."""
    before = described(lamp, summary="Switch a lamp in a room of the house on.")
    after = described(lamp, summary="Switch a lamp in a room of the house on or off.")
    assert (
        told_change(before, after)
        == 'summary was "… the house on.", is now "… the house on or off."'
    )


def test_of_rules_those_are_told_that_came_or_went(lamp):
    """Rules that stay are not told again."""
    one, two = (
        described(lamp, usage_rules=rules) for rules in (("Knock.",), ("Knock.", "Say the room."))
    )
    assert told_change(one, two) == 'usage_rules, new: "Say the room."'
    assert told_change(two, one) == 'usage_rules, gone: "Say the room."'


def test_other_texts_are_counted(lamp):
    """The first text that differs is told, and how many more there are."""
    after = described(lamp, summary="Light.", parameters={"room": "Its name."})
    assert told_change(lamp, after).endswith('is now "Light.", and 1 more')


def test_long_texts_with_line_ends_are_one_short_line(lamp):
    """What a model wrote fits into a line of a log."""
    after = described(lamp, summary="Light\n" * 100, parameters={"room": "a\n" * 100})
    told = told_change(described(lamp, summary="Dark " * 100), after)
    assert len(told) < 120
    assert "\n" not in told


def test_equal_texts_are_no_change(lamp):
    """Nothing is told of what the words do not show."""
    assert told_change(lamp, lamp) == ""
