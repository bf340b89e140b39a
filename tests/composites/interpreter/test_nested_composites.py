"""Composites in composites: one meter, one path, one trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError
from agentkit.tools.definition import Effects, Signature, ToolDefinition
from agentkit.tools.tool import Tool

Compile = Callable[..., Composite]


def as_tool(composite: Composite) -> Tool:
    """A composite as a tool that is known to change nothing."""
    names = [parameter.name for parameter in composite.program.parameters]
    schema = {"type": "object", "properties": {name: {} for name in names}, "required": names}
    signature = Signature(parameters=schema, effects=Effects(reads=False, writes=False))
    return Tool(
        definition=ToolDefinition(name=composite.name, signature=signature),
        function=composite,
        is_async=composite.needs_event_loop,
    )


@pytest.fixture
def ratio(compiled: Compile, calculator: Mapping[str, Tool]) -> Tool:
    """A composite over ``div``."""
    return as_tool(compiled("def ratio(a, b):\n    return div(a, b)", calculator["div"]))


def test_the_path_goes_all_the_way_down(compiled: Compile, ratio: Tool) -> None:
    """A failure is told once, with every tool that led to it."""
    percent = as_tool(compiled("def percent(a, b):\n    return 100 * ratio(a, b)", ratio))
    table = compiled("def table(rows):\n    return [percent(x, y) for x, y in rows]", percent)
    assert table.run({"rows": [[1, 2], [3, 4]]}) == [50, 75]
    with pytest.raises(CompositeRunError) as failed:
        table.run({"rows": [[1, 0]]})
    error = failed.value
    assert error.path == ("table", "percent", "ratio", "div")
    assert str(error).startswith("table → percent → ratio → div: ZeroDivisionError: ")
    assert (error.code, type(error.__cause__)) == ("child_failed", ZeroDivisionError)


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (CompositeLimits(fuel=150), "fuel"),
        (CompositeLimits(child_calls=15), "child_calls"),
        (CompositeLimits(nesting=1), "nesting"),
    ],
)
def test_one_meter_for_all(
    compiled: Compile, ratio: Tool, limits: CompositeLimits, code: str
) -> None:
    """What the inner runs use is missing in the outer one, whatever they allow themselves."""
    text = "def f(n):\n    return [ratio(x, 2) for x in range(n)]"
    assert compiled(text, ratio).run({"n": 20})[-1] == 9.5
    with pytest.raises(CompositeRunError) as stopped:
        compiled(text, ratio, limits=limits).run({"n": 20})
    assert (stopped.value.code, stopped.value.path[0]) == (code, "f")


def test_many_levels_run_and_too_many_are_refused(compiled: Compile) -> None:
    """Composites may be nested as deep as the limit allows."""
    level = as_tool(compiled("def level_0(x):\n    return x + 1"))
    for number in range(1, 24):
        level = as_tool(
            compiled(f"def level_{number}(x):\n    return level_{number - 1}(x) + 1", level)
        )
    assert level(x=0) == 24
    top = compiled("def top(x):\n    return level_23(x)", level)
    with pytest.raises(CompositeRunError, match="24 levels") as refused:
        top.run({"x": 0})
    assert (refused.value.code, len(refused.value.path)) == ("nesting", 25)


async def test_nesting_and_waiting(compiled: Compile, world: Any) -> None:
    """Inner composites of a waiting one share its meter, path and concurrency."""
    read = world.tools[0]
    inner = as_tool(compiled("def inner(key):\n    return read(key) + '!'", read))
    assert inner.is_async
    outer = compiled(
        "def outer(keys):\n    return [inner(keys[0]), inner(keys[1]), inner(keys[2])]",
        inner,
        limits=CompositeLimits(concurrency=2),
    )
    keys = list("abc")
    assert await outer.run_async({"keys": keys}) == [f"{key}!" for key in keys]
    assert world.most == 2
    with pytest.raises(CompositeRunError) as failed:
        await outer.run_async({"keys": ["a", "bad", "c"]})
    assert failed.value.path == ("outer", "inner", "read")
    few = compiled(
        "def outer(keys):\n    return [inner(key) for key in keys]",
        inner,
        limits=CompositeLimits(child_calls=5),
    )
    with pytest.raises(CompositeRunError) as stopped:
        await few.run_async({"keys": list("abcdefgh")})
    assert stopped.value.code == "child_calls"
