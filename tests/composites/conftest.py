"""Tools that composites call in these tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from agentkit.composites.parser import parse
from agentkit.errors import CompositeError, SourceProblem
from agentkit.tools.definition import EffectName, Effects, ToolDefinition
from agentkit.tools.tool import Tool

Problems = Callable[[str], tuple[SourceProblem, ...]]


def unbound(name: str, *parameters: str, optional: str = "", effects: EffectName | None = None):
    """A catalogue entry: what the parser needs of a tool."""
    schema = {
        "type": "object",
        "properties": {parameter: {} for parameter in (*parameters, *optional.split())},
        "required": list(parameters),
        "additionalProperties": False,
    }
    known = Effects.of((effects,)) if effects else None
    return Tool(definition=ToolDefinition.from_schema(name, "", schema, effects=known))


@pytest.fixture(scope="session")
def tools() -> Mapping[str, Tool]:
    """Two tools that only read, one that writes, three of which nothing is known."""
    made = (
        unbound("add", "a", "b"),
        unbound("look_up", "key", optional="default", effects="reads"),
        unbound("measure", "x", effects="reads"),
        unbound("send", "text", effects="writes"),
        unbound("weather.now", "city", optional="unit"),
        unbound("get user", "user-id", optional="from"),
    )
    return {tool.name: tool for tool in made}


@pytest.fixture(scope="session")
def problems_of(tools: Mapping[str, Tool]) -> Problems:
    """Parses a text and gives what is wrong with it; empty when it was read."""

    def problems(source: str) -> tuple[SourceProblem, ...]:
        try:
            parse(source, tools)
        except CompositeError as error:
            return error.problems
        return ()

    return problems
