"""Recorded calls become worked calls of primitives, and nothing else of the library changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import ToolDefinition
from agentkit.errors import ToolNotFoundError, UsageError
from agentkit.evolution import ToolManager
from agentkit.testing import primitive_library
from agentkit.tools.definition import Effects, Example

WEATHER = ToolDefinition.from_schema(
    "weather",
    "The weather of a day.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
    },
    effects=Effects(reads=True, writes=False),
)


def answered(city, result, **further):
    """One recorded call of the tool."""
    return Example(arguments={"city": city, **further}, result=result)


@pytest.fixture
def above(manager):
    """A manager of a library with a composite over another one over `add`."""
    manager.insert('''
@composite(examples=[{"arguments": {"x": 2}, "result": 7}])
def inner(x: float) -> float:
    """Twice a number, and three more."""
    return add(mul(x, 2), 3)
''')
    manager.insert('''
@composite(examples=[{"arguments": {"x": 2}, "result": 14}])
def outer(x: float) -> float:
    """Both of it, doubled at last."""
    return mul(inner(x), 2)
''')
    assert {"inner", "outer"} <= set(manager.library.tools)
    return manager


def test_only_worked_calls_change(store):
    """The tool has the calls, and is otherwise as it was; so are all others."""
    manager = ToolManager(store)
    manager.register([WEATHER, *primitive_library()])
    before = manager.library
    assert manager.record({"weather": [answered("Rome", "sunny")]}, evidence=["episode-1"]) == 2
    after = manager.library
    assert after["weather"].definition == replace(WEATHER, examples=(answered("Rome", "sunny"),))
    others = before.without(["weather"])
    assert after.without(["weather"]).digest == others.digest
    assert store.history("weather")[-1].evidence == ("episode-1",)


def test_a_call_keeps_its_first_answer(store):
    """The same call in other words, or with another answer, is not taken a second time."""
    manager = ToolManager(store)
    manager.register([WEATHER])
    manager.record({"weather": [answered("Rome", "sunny"), answered("Rome", "rain", days=1)]})
    assert manager.record({"weather": [answered("Rome", "snow")]}) == 2
    assert manager.library["weather"].definition.examples == (answered("Rome", "sunny"),)


@pytest.mark.parametrize(
    ("worked_calls", "error"),
    [
        ({"wether": [answered("Rome", "sunny")]}, ToolNotFoundError),
        ({"inner": [Example(arguments={"x": 0}, result=3)]}, UsageError),
        ({"add": [Example(arguments={"a": 1, "b": {2}}, result=3)]}, UsageError),
        ({"add": [Example(arguments={"a": 1, "b": 2}, result=float("nan"))]}, UsageError),
    ],
    ids=["unknown", "composite", "set", "nan"],
)
def test_misuse_changes_nothing(above, worked_calls, error):
    """Unknown tools, composites and what is no JSON are refused."""
    before = above.library.digest
    with pytest.raises(error):
        above.record(worked_calls)
    assert above.refresh().digest == before
