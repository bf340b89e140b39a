"""A change is moved onto a newer revision field by field, or said to be in conflict."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, strategies as st

from agentkit import ToolDefinition
from agentkit.library.rebase import rebase
from agentkit.tools.definition import Description, Example, Specification
from agentkit.tools.rules import OneOf

words = st.sampled_from(["", "a", "b", "c"])
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
    parameters = st.dictionaries(st.sampled_from("xyz"), words, max_size=3)
    return st.builds(definition, words, parameters, entries, entries)


@given(definitions(), definitions())
def test_the_same_change_twice_is_no_conflict(base, candidate):
    """What both sides did alike is done once."""
    rebased = rebase(base, candidate, candidate)
    assert (rebased.definition, rebased.conflicts) == (candidate, ())


@given(definitions(), definitions(), definitions())
def test_conflicts_do_not_depend_on_the_side(base, one, other):
    """The two sides conflict in the same fields, whoever is first."""
    fields = {conflict.field for conflict in rebase(base, one, other).conflicts}
    assert fields == {conflict.field for conflict in rebase(base, other, one).conflicts}


@given(definitions(), definitions(), definitions())
def test_a_field_comes_from_whoever_changed_it(base, one, other):
    """A summary that one side alone changed is as that side has it."""
    merged = rebase(base, one, other).definition.description.summary
    sides = [side.description.summary for side in (base, one, other)]
    if sides[0] == sides[2]:
        assert merged == sides[1]
    elif sides[0] == sides[1]:
        assert merged == sides[2]


@given(definitions(), definitions(), definitions())
def test_what_one_side_took_out_of_a_list_stays_out(base, one, other):
    """Entries that either side removed are not in the merged list, and none is there twice."""
    rebased = rebase(base, one, other)
    if any(conflict.field == "description.usage_rules" for conflict in rebased.conflicts):
        return
    rules = [side.description.usage_rules for side in (base, one, other)]
    merged = rebased.definition.description.usage_rules
    gone = set(rules[0]) - (set(rules[1]) & set(rules[2]))
    assert not gone & set(merged)
    assert set(merged) >= (set(rules[1]) | set(rules[2])) - gone
    assert len(merged) == len(set(merged))


def test_learned_rules_and_examples_come_together():
    """A rule of one side and an example of the other are both in the result."""
    base = ToolDefinition(name="t")
    rule = OneOf(parameter="x", values=(1, 2))
    one = replace(base, specification=Specification(rules=(rule,)))
    other = replace(base, examples=(Example(arguments={"x": 1}),))
    merged = rebase(base, one, other).definition
    assert (merged.specification.rules, merged.examples) == ((rule,), other.examples)
