"""Rules are data: they survive JSON, and a definition without any is written as it always was."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import DefinitionError
from agentkit.tools import Description, Example, Signature, Specification, ToolDefinition
from agentkit.tools.canonical import digest
from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    rule_from_json,
    rule_to_json,
)

TEXT = st.text(max_size=5)
NUMBER = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
RULES = st.one_of(
    st.builds(
        OneOf,
        parameter=TEXT,
        values=st.lists(TEXT | NUMBER | st.booleans() | st.none(), max_size=3).map(tuple),
    ),
    st.builds(
        Between,
        parameter=TEXT,
        minimum=st.none() | NUMBER,
        maximum=st.none() | NUMBER,
        exclusive_minimum=st.none() | NUMBER,
        exclusive_maximum=st.none() | NUMBER,
        multiple_of=st.none() | NUMBER,
        unit=TEXT,
    ),
    st.builds(
        Form,
        parameter=TEXT,
        pattern=TEXT,
        format=st.sampled_from(["", "date"]),
        words=TEXT,
        example=TEXT,
    ),
    st.builds(Requires, parameter=TEXT, others=st.lists(TEXT, max_size=2).map(tuple)),
    st.builds(Condition, expression=TEXT, words=TEXT),
    st.builds(CallBefore, tool=TEXT, parameter=TEXT),
)


@given(st.lists(RULES, max_size=3).map(tuple))
def test_rules_survive_json_text(rules) -> None:
    """A definition with rules is read back equal, with the same digest; it is of format 2."""
    definition = ToolDefinition(name="f", specification=Specification(rules=rules))
    record = definition.to_json()
    copy = ToolDefinition.from_json(json.loads(json.dumps(record)))
    assert copy == definition
    assert copy.digest == definition.digest
    assert copy.specification.rules == rules
    assert record["format"] == (2 if rules else 1)
    assert all(rule_from_json(rule_to_json(rule)) == rule for rule in rules)


@given(
    st.builds(
        ToolDefinition,
        name=st.text(min_size=1, max_size=5).filter(str.strip),
        signature=st.builds(Signature),
        description=st.builds(Description, summary=TEXT, usage_rules=st.lists(TEXT, max_size=2).map(tuple)),
        specification=st.builds(
            Specification,
            pre=st.lists(TEXT, max_size=2).map(tuple),
            post=st.lists(TEXT, max_size=2).map(tuple),
            text=st.lists(TEXT, max_size=2).map(tuple),
            complexity=TEXT,
        ),
        examples=st.lists(st.builds(Example, arguments=st.just({})), max_size=1).map(tuple),
    )
)  # fmt: skip
def test_a_definition_without_rules_is_written_as_before(definition) -> None:
    """JSON and digest are those of format 1, which knew no rules, byte for byte."""
    specification = definition.specification
    parts = {
        "pre": list(specification.pre),
        "post": list(specification.post),
        "text": list(specification.text),
        "complexity": specification.complexity,
    }
    description = {
        "summary": definition.description.summary,
        "usage_rules": list(definition.description.usage_rules),
    }
    record = {
        "format": 1,
        "name": definition.name,
        "signature": {"parameters": {"type": "object", "properties": {}}},
        "description": {name: part for name, part in description.items() if part},
        "specification": {name: part for name, part in parts.items() if part},
        "examples": [{"arguments": {}} for _ in definition.examples],
        "origin": {"kind": "function"},
    }
    written = {name: part for name, part in record.items() if part or name == "name"}
    assert json.dumps(definition.to_json()) == json.dumps(written)
    written.pop("origin")
    assert definition.digest == digest(written)


def test_the_digest_covers_the_rules(loan, loan_with) -> None:
    """A rule makes another revision; without it, it is the old revision again."""
    ruled = loan_with(OneOf(parameter="periods", values=(36,)))
    assert ruled.digest != loan.digest
    assert ruled != loan
    assert replace(ruled, specification=Specification()).digest == loan.digest


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("one_of", "a rule is an object"),
        ([3], "a rule is an object"),
        ([{}], "no rule of kind None"),
        ([{"kind": "magic"}], "no rule of kind 'magic'"),
        ([{"kind": ["one_of"]}], "no rule of kind"),
        ([{"kind": "one_of"}], "missing"),
        ([{"kind": "one_of", "parameter": 3, "values": []}], "parameter of a rule .* is a text"),
        ([{"kind": "one_of", "parameter": "x", "values": "abc"}], "values .* is a list"),
        ([{"kind": "one_of", "parameter": "x", "values": [[1]]}], "values .* is a list"),
        ([{"kind": "one_of", "parameter": "x", "values": [], "extra": 1}], "no part 'extra'"),
        ([{"kind": "between", "parameter": "x", "minimum": True}], "minimum .* is a number"),
        ([{"kind": "between", "parameter": "x", "minimum": "1"}], "minimum .* is a number"),
        ([{"kind": "requires", "parameter": "x", "others": [None]}], "others .* is a list"),
        ([{"kind": "between", "parameter": "x", "maximum": math.inf}], "maximum .* is a number"),
        ([{"kind": "one_of", "parameter": "x", "values": [math.nan]}], "values .* is a list"),
    ],
)
def test_what_is_no_rule_is_refused(rules, message) -> None:
    """A record whose rules are of another shape is no definition, and the reason is given."""
    record = {"name": "f", "format": 2, "specification": {"rules": rules}}
    with pytest.raises(DefinitionError, match=message):
        ToolDefinition.from_json(record)
