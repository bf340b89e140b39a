"""Revisions side by side: three-way merges and differences."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, strategies as st

from agentkit import ToolDefinition
from agentkit.evolution.differences import differences
from agentkit.library.merging import rebase
from agentkit.tools.definition import Description, Example, Signature, Specification
from agentkit.tools.rules import OneOf

# --- A change is moved onto a newer revision field by field, or said to be in conflict -----------


some_words = st.sampled_from(["", "a", "b", "c"])
entries = st.sampled_from(["", "p", "q", "pq", "qp", "pr", "rs", "pqrs"]).map(tuple)


def definition(summary, parameters, rules, examples):
    """A small definition."""
    return ToolDefinition(
        name="tool",
        description=Description(summary=summary, parameters=parameters, usage_rules=rules),
        specification=Specification(complexity=summary),
        examples=tuple(Example(arguments={"x": name}) for name in examples),
    )


def definitions():
    """Small definitions that often agree in a field."""
    parameters = st.dictionaries(st.sampled_from("xyz"), some_words, max_size=3)
    return st.builds(definition, some_words, parameters, entries, entries)


@given(definitions(), definitions(), definitions())
def test_a_field_comes_from_whoever_changed_it(base, one, other):
    """A summary that one side alone changed is as that side has it."""
    merged = rebase(base, one, other).definition.description.summary
    sides = [side.description.summary for side in (base, one, other)]
    if sides[0] == sides[2]:
        assert merged == sides[1]
    elif sides[0] == sides[1]:
        assert merged == sides[2]


# --- A change is told field by field and word by word --------------------------------------------


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
