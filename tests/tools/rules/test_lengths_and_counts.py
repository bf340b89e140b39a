"""Bounds on the length of a text and on the number of items: the whole way of such a rule."""

from __future__ import annotations

import pytest

from agentkit.composites import rule_problems
from agentkit.composites.rule_checker import RuleChecker
from agentkit.errors import DefinitionError
from agentkit.tools.definition import Specification, ToolDefinition
from agentkit.tools.rules import Between, OneOf, rule_from_json, rule_to_json
from agentkit.tools.rules.checking import holds
from agentkit.tools.rules.rendering import narrowed_schema, rule_sentence
from agentkit.tools.validation import validate_arguments

TITLE = Between(parameter="title", measure="length", minimum=2, maximum=5)
TAGS = Between(parameter="tags", measure="items", maximum=2)
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 80},
        "tags": {"type": "array", "items": {"type": "string"}},
        "year": {"type": "integer"},
    },
}


def note(*rules):
    """A tool that holds these rules."""
    return ToolDefinition(
        name="note",
        signature=ToolDefinition.from_schema("note", "", SCHEMA).signature,
        specification=Specification(rules=rules),
    )


def test_models_read_and_are_offered_the_bound():
    """The sentence speaks of characters and items, and the schema has the tighter bound."""
    assert rule_sentence(TITLE) == "title must have from 2 to 5 characters."
    assert rule_sentence(TAGS) == "tags must have at most 2 items."
    one = Between(parameter="tags", measure="items", minimum=1)
    assert rule_sentence(one) == "tags must have at least 1 item."
    offered = narrowed_schema(SCHEMA, [TITLE, TAGS])["properties"]
    assert offered["title"] == {"type": "string", "minLength": 2, "maxLength": 5}
    assert offered["tags"]["maxItems"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"title": "sechse"}, "`title` must have from 2 to 5 characters, got the string 'sechse'"),
        ({"tags": ["a", "b", "c"]}, "`tags` must have at most 2 items, got"),
    ],
)
def test_calls_are_held_to_it(arguments, said):
    """The checker refuses a call in the words of the rule, as the narrowed schema does."""
    failure = RuleChecker(note(TITLE, TAGS)).refusal(arguments)
    assert failure.rule.startswith(said)
    assert failure.cause == "between"
    narrowed = ToolDefinition.from_schema("note", "", narrowed_schema(SCHEMA, [TITLE, TAGS]))
    assert validate_arguments(narrowed, arguments)


def test_characters_are_counted_as_json_schema_counts_them():
    """Code points, not bytes; and values of another type are left to the contract."""
    assert holds(TITLE, "日本語版だ")
    assert not holds(TITLE, "日本語版だよ")
    assert holds(TITLE, 123456)
    assert holds(TAGS, "a, b, c")


def test_it_is_written_and_read():
    """The measure is a part of the record, and older readers are told that they can not read it."""
    assert rule_from_json(rule_to_json(TITLE)) == TITLE
    record = note(TITLE).to_json()
    assert (record["format"], note(OneOf(parameter="year", values=(1,))).to_json()["format"]) == (
        3,
        2,
    )
    assert ToolDefinition.from_json(record) == note(TITLE)
    with pytest.raises(DefinitionError, match="upgrade"):
        ToolDefinition.from_json({**record, "format": 4})


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (Between(parameter="year", measure="length", maximum=4), "wrong_type"),
        (Between(parameter="title", measure="items", maximum=4), "wrong_type"),
        (Between(parameter="title", measure="words", maximum=4), "malformed"),
        (Between(parameter="title", measure="length", exclusive_maximum=4), "malformed"),
        (Between(parameter="title", measure="length", multiple_of=4), "malformed"),
        (Between(parameter="title", measure="length", maximum=2.5), "unusable_number"),
        (Between(parameter="title", measure="length", minimum=-1), "unusable_number"),
        (Between(parameter="title", measure="length"), "empty_rule"),
        (Between(parameter="title", measure="length", minimum=5, maximum=2), "reversed_bounds"),
        (Between(parameter="title", measure="length", minimum=81), "contradiction"),
        (Between(parameter="title", measure=3, minimum=1), "malformed"),
    ],
)
def test_what_is_wrong_with_one(rule, code):
    """It must speak of the right type, in whole numbers, and leave something to say."""
    assert [problem.code for problem in rule_problems(rule, note())] == [code]


def test_bounds_of_value_and_length_do_not_meet():
    """A parameter that takes numbers and texts may have both, which say nothing of each other."""
    both = ToolDefinition.from_schema(
        "n", "", {"properties": {"x": {"type": ["integer", "string"]}}}
    )
    long = Between(parameter="x", measure="length", maximum=2)
    ruled = ToolDefinition(
        name="n", signature=both.signature, specification=Specification(rules=(long,))
    )
    assert rule_problems(Between(parameter="x", minimum=100), ruled) == ()
    assert rule_problems(Between(parameter="x", measure="length", minimum=3), ruled)
