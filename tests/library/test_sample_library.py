"""The sample library is complete and true: its examples are what its tools return."""

from __future__ import annotations

import ast

import pytest

from agentkit.testing import sample_library

TOOLS = {tool.name: tool for tool in sample_library()}


@pytest.mark.parametrize("name", TOOLS)
def test_all_four_levels_are_filled(name):
    """Every tool has a signature, words for each parameter, conditions and a worked example."""
    definition = TOOLS[name].definition
    assert definition.signature.result is not None
    assert definition.signature.effects.to_json()
    assert set(definition.description.parameters) == set(definition.signature.properties)
    assert definition.description.summary
    assert definition.description.tags
    assert (
        definition.specification.pre
        or definition.specification.post
        or definition.specification.text
    )
    assert definition.specification.complexity
    assert all(example.query for example in definition.examples)
    assert definition.examples


@pytest.mark.parametrize("name", TOOLS)
def test_examples_are_what_the_tool_returns(name):
    """Calling a tool with the arguments of an example gives the result of the example."""
    tool = TOOLS[name]
    for example in tool.definition.examples:
        assert tool(**example.arguments) == example.result


@pytest.mark.parametrize("name", TOOLS)
def test_conditions_are_expressions_over_known_names(name):
    """Pre- and postconditions parse, and speak of parameters, the result and pure functions only."""
    definition = TOOLS[name].definition
    known = {*definition.signature.properties, "len"}
    for expressions, names in (
        (definition.specification.pre, known),
        (definition.specification.post, known | {"result"}),
    ):
        for expression in expressions:
            tree = ast.parse(expression, mode="eval")
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert used <= names


def test_effects_range_from_pure_to_destructive():
    """The library has tools that read, that write, and one that asks for approval."""
    effects = [tool.definition.signature.effects for tool in TOOLS.values()]
    assert any(effect.is_read_only for effect in effects)
    assert any(effect.writes and not effect.destructive for effect in effects)
    assert [tool.name for tool in TOOLS.values() if tool.needs_approval] == [
        "calendar_cancel_event"
    ]


def test_each_call_gives_an_equal_library():
    """The sample is the same in every process, so that its digest can be compared."""
    assert sample_library().digest == sample_library().digest
    assert sample_library().version == 0
