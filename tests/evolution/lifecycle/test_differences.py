"""A change is told field by field and word by word."""

from __future__ import annotations

from dataclasses import replace

from agentkit import ToolDefinition
from agentkit.evolution.differences import compare_words, differences
from agentkit.tools.definition import Description, Example, Signature, Specification
from agentkit.tools.rules import OneOf


def test_a_word_that_changes():
    """Only the word that changes is told, in scripts without blanks as well."""
    assert compare_words("from 1 to 12", "from 1 to 60") == (
        ("same", "from 1 to "),
        ("removed", "12"),
        ("added", "60"),
    )
    assert compare_words("今日の天気", "明日の天気") == (
        ("removed", "今"),
        ("added", "明"),
        ("same", "日の天気"),
    )


def test_every_field_is_told():
    """Each field that differs is named, in the order in which a definition is read."""
    base = ToolDefinition(
        name="t",
        description=Description(summary="Old.", parameters={"a": "A.", "b": "B."}, tags=("x",)),
    )
    after = replace(
        base,
        description=Description(
            summary="New.", parameters={"a": "An A.", "c": "C."}, usage_rules=("Ask first.",)
        ),
        specification=Specification(
            pre=("a > 0",), rules=(OneOf(parameter="a", values=(1, 2)),), complexity="O(n)"
        ),
        examples=(Example(arguments={"a": 1}, result=2, query="one?"),),
        signature=Signature(parameters={"type": "object", "properties": {"a": {}}}),
    )
    told = {one.field: (one.before, one.after) for one in differences(base, after)}
    assert list(told) == [
        "summary",
        "parameters.a",
        "parameters.b",
        "parameters.c",
        "usage_rules",
        "tags",
        "rules",
        "pre",
        "complexity",
        "examples",
        "signature.parameters",
    ]
    assert told["parameters.b"] == ("B.", "")
    assert told["rules"] == ("", "a must be one of 1, 2.")
    assert told["examples"] == ("", "'one?': {\"a\": 1} -> 2")
    assert differences(base, base) == ()


def test_a_changed_entry_of_a_list_is_one_difference():
    """A reworded rule stands beside what it was; new ones and others stand alone."""
    base = ToolDefinition(
        name="t", description=Description(usage_rules=("Ask for the city first.", "Be kind."))
    )
    rules = ("Ask for the city and the day first.", "Never twice.")
    after = replace(base, description=Description(usage_rules=rules))
    told = [(one.before, one.after) for one in differences(base, after)]
    assert told == [
        ("Ask for the city first.", "Ask for the city and the day first."),
        ("Be kind.", ""),
        ("", "Never twice."),
    ]
