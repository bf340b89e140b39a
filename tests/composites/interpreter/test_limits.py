"""What an operation raises, and that no program takes more than its share of work, calls or time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError
from agentkit.tools.tool import Tool

Compile = Callable[..., Composite]
Body = Callable[..., Any]


def test_what_a_child_returns_is_weighed(compiled: Compile, calculator: Mapping[str, Tool]) -> None:
    """A child's value is charged by all it contains, counted as often as it is reachable."""
    chain: list[Any] = [0]
    tree: list[Any] = [0]
    for _ in range(30):
        chain, tree = [chain, 1], [tree, tree]
    composite = compiled("def f(a):\n    x = echo(a)\n    return len(x)", calculator["echo"])
    assert composite.run({"a": chain}) == 2
    with pytest.raises(CompositeRunError) as stopped:
        composite.run({"a": tree})
    assert (stopped.value.code, stopped.value.path) == ("fuel", ("f", "echo"))


def test_child_calls_are_counted(compiled: Compile, calculator: Mapping[str, Tool]) -> None:
    """One call beyond the limit does not happen."""
    limits = CompositeLimits(child_calls=3)
    composite = compiled(
        "def f(a):\n    return [echo(x) for x in range(a)]", calculator["echo"], limits=limits
    )
    calls: list[Any] = []
    assert composite.run({"a": 3}) == [0, 1, 2]
    with pytest.raises(CompositeRunError, match="at most 3") as stopped:
        composite.run({"a": 4}, trace=calls.append)
    assert (stopped.value.code, stopped.value.path) == ("child_calls", ("f", "echo"))
    assert len(calls) == 3


def test_the_deadline_stops_the_next_call(
    compiled: Compile, calculator: Mapping[str, Tool]
) -> None:
    """A child that blocks cannot be stopped; no further one is called."""
    limits = CompositeLimits(deadline_seconds=1e-9)
    composite = compiled("def f(a):\n    return echo(a)", calculator["echo"], limits=limits)
    with pytest.raises(CompositeRunError) as stopped:
        composite.run({"a": 1})
    assert stopped.value.code == "deadline"
    free = CompositeLimits(deadline_seconds=None)
    assert compiled("def f(a):\n    return echo(a)", calculator["echo"], limits=free)(a=1) == 1


async def test_the_deadline_ends_waiting(compiled: Compile, world: Any) -> None:
    """A run that waits too long is stopped, and says for what it waited."""
    world.gates["never"] = asyncio.Event()
    composite = compiled(
        "def f(a):\n    x = read('now')\n    return [x, read('never')]",
        *world.tools,
        limits=CompositeLimits(deadline_seconds=0.05),
    )
    with pytest.raises(CompositeRunError, match=r"0\.05 seconds") as stopped:
        await composite.run_async({"a": 1})
    assert (stopped.value.code, stopped.value.path) == ("deadline", ("f", "read"))
    assert stopped.value.expression == "read(key='never')"
    assert world.running == 0


# --- operations ------------------------------------------------------------------------------------


def failure(
    body: Body, text: str, a: Any = None, b: Any = None, **limits: Any
) -> CompositeRunError:
    """What a program raises."""
    with pytest.raises(CompositeRunError) as failed:
        body(text, a, b, limits=CompositeLimits(**limits))
    return failed.value


@pytest.mark.parametrize(
    ("text", "code", "cause"),
    [
        ("return 1 / a", "zero_division", ZeroDivisionError),
        ("return a + 'x'", "type_error", TypeError),
        ("return a.upper()", "type_error", AttributeError),
        ("for x in a:\n    pass\nreturn 1", "type_error", TypeError),
        ("return {[]: a}", "type_error", TypeError),
        ("return [x for x in a]", "type_error", TypeError),
        ("return sum(['x'])", "type_error", TypeError),
        ("x, y = [1]\nreturn x", "value_error", ValueError),
        ("x, y = [1, 2, 3]\nreturn x", "value_error", ValueError),
        ("return max([])", "value_error", ValueError),
        ("return [1][1]", "index_error", IndexError),
        ("return {}['k']", "key_error", KeyError),
        ("return 10.0 ** 400", "overflow", OverflowError),
        ("return len(range(10 ** 30))", "overflow", OverflowError),
    ],
)
def test_errors_of_python_have_codes(body: Body, text: str, code: str, cause: type) -> None:
    """The error names its place; Python's own is its cause."""
    error = failure(body, text, 0)
    assert (error.code, error.path, type(error.__cause__)) == (code, ("f",), cause)
    assert error.expression
    assert f"{cause.__name__}: {error.__cause__}" in str(error)
    assert f"`{error.expression}`" in str(error)


def test_values_that_are_no_json_data_are_not_operated_on(body: Body) -> None:
    """The operators of other objects are code that nobody has counted."""
    value = Decimal(1)
    texts = (
        "return a + 1",
        "return a == 1",
        "return str(a)",
        "return a",
        "return [a][0] < 2",
        "return len(a)",
        "return a.upper()",
        "return f'{a}'",
        "return [a] == [1]",
        "return [a]",
    )
    codes = {text: failure(body, text, value).code for text in texts}
    assert set(codes.values()) == {"opaque_value"}
