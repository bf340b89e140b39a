"""Schema cues say what the schema says."""

from __future__ import annotations

import dataclasses
import json

from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.tools.rules import OneOf
from agentkit.tools.schema import detach_descriptions
from agentkit.tools.validation import ArgumentValidator
from agentkit_training.interface import MOST_VALUES, cued

NAMES = st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=1, max_size=5)
VALUES = st.lists(st.text(max_size=6) | st.integers() | st.booleans(), min_size=1, max_size=4) | (
    st.just(list(range(MOST_VALUES + 1)))
)
TEXTS = st.text(max_size=12)
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "boolean", ["string", "null"]]),
        "enum": VALUES,
        "description": TEXTS,
    },
)


def objects(parts):
    """Schemas of objects over ``parts``, of which some are required."""
    return st.dictionaries(NAMES, parts, max_size=4).flatmap(
        lambda properties: st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.just(properties),
                "required": st.lists(st.sampled_from(sorted(properties)), unique=True)
                if properties
                else st.just([]),
            },
            optional={"description": TEXTS},
        )
    )


def arrays(parts):
    return st.fixed_dictionaries({"type": st.just("array"), "items": parts})


PARTS = st.recursive(LEAVES, lambda parts: objects(parts) | arrays(parts), max_leaves=4)
TOOLS = objects(PARTS).map(lambda schema: ToolDefinition.from_schema("tool", "A tool.", schema))


def part_at(definition, path):
    """The schema of a parameter, and whether it is required, by walking down its path."""
    part, is_required = definition.signature.parameters, False
    for step in path.split("."):
        name, *items = step.split("[]")
        is_required = name in part.get("required", ()) and not items
        part = part["properties"][name]
        for _ in items:
            part = part["items"]
    return part, is_required


def added(definition):
    """The cue behind each text that has one."""
    before, after = definition.description.parameters, cued(definition).description.parameters
    for path, text in after.items():
        old = before.get(path, "")
        assert text.startswith(old)
        if text != old:
            cue = text[len(old) :].strip()
            assert cue[0] == "["
            assert cue[-1] == "]"
            yield path, cue[1:-1]


@settings(max_examples=50)
@given(TOOLS)
def test_a_cue_states_nothing_that_the_schema_does_not(definition):
    """Required and allowed values in a cue are those of the parameter's own schema."""
    for path, cue in added(definition):
        part, is_required = part_at(definition, path)
        wanted = ["required"] if is_required else []
        if len(part.get("enum", ())) in range(1, MOST_VALUES + 1):
            values = (json.dumps(one, ensure_ascii=False) for one in part["enum"])
            wanted.append(f"one of {', '.join(values)}")
        assert cue == "; ".join(wanted)


@settings(max_examples=50)
@given(TOOLS)
def test_only_texts_of_parameters_change(definition):
    """The contract, the conditions, the summary and the schema without words stay as they are."""
    shown = cued(definition)
    assert shown.signature is definition.signature
    assert shown.specification is definition.specification
    assert (shown.name, shown.text, shown.examples) == (
        definition.name,
        definition.text,
        definition.examples,
    )
    bare, _ = detach_descriptions(definition.parameters_schema)
    assert detach_descriptions(shown.parameters_schema)[0] == bare


@settings(max_examples=50)
@given(TOOLS, st.dictionaries(NAMES, st.text(max_size=3) | st.integers(), max_size=4))
def test_calls_are_validated_as_before(definition, arguments):
    """The same calls are refused for the same reasons; the schema that is quoted has its words."""
    before, after = (
        [(one.path, one.rule, one.keyword) for one in ArgumentValidator(shown).check(arguments)]
        for shown in (definition, cued(definition))
    )
    assert before == after


def test_what_a_rule_narrowed_is_in_the_cue():
    """Learned rules narrow the schema that a model reads, and the cue says what it reads."""
    schema = {"properties": {"periods": {"type": "integer"}}, "required": ["periods"]}
    loan = ToolDefinition.from_schema("loan", "A loan.", schema)
    rules = (OneOf(parameter="periods", values=(36, 48, 60)),)
    specification = dataclasses.replace(loan.specification, rules=rules)
    ruled = dataclasses.replace(loan, specification=specification)
    assert cued(ruled).description.parameters["periods"] == "[required; one of 36, 48, 60]"
