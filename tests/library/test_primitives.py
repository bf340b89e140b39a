"""The primitives are complete and true: their examples are what they return."""

from __future__ import annotations

import pytest

from agentkit.testing import primitive_library

TOOLS = {tool.name: tool for tool in primitive_library()}


@pytest.mark.parametrize("name", TOOLS)
def test_all_four_levels_are_filled(name):
    """Every primitive has a result type, words for each parameter, conditions and three examples."""
    definition = TOOLS[name].definition
    effects = definition.signature.effects
    assert definition.signature.result is not None
    assert effects.is_read_only
    assert effects.reads is effects.destructive is effects.open_world is False
    assert set(definition.description.parameters) == set(definition.signature.properties)
    assert definition.description.summary
    assert definition.description.tags
    assert definition.specification.post
    assert definition.specification.complexity
    assert len(definition.examples) >= 3
    assert any(example.query for example in definition.examples)


@pytest.mark.parametrize("name", TOOLS)
def test_examples_are_what_the_primitive_returns(name):
    """Calling a primitive with the arguments of an example gives its result, of the same type."""
    for example in TOOLS[name].definition.examples:
        result = TOOLS[name](**example.arguments)
        assert result == example.result
        assert type(result) is type(example.result)


def test_each_call_gives_an_equal_library():
    """The library is the same in every process, so that its digest can be compared."""
    assert primitive_library().digest == primitive_library().digest
    assert primitive_library().version == 0
