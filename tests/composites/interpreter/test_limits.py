"""No program takes more than its share of work, memory, calls or time."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError
from agentkit.tools.tool import Tool

Compile = Callable[..., Composite]
Body = Callable[..., Any]
MEMORY_MB = 16

GREEDY = {
    "rows of rows": "return [[0] * 10000 for i in range(9999)]",
    "shared list as text": "x = [1]\nfor i in range(30):\n    x = [x, x]\nreturn str(x)",
    "shared list returned": "x = []\nfor i in range(30):\n    x = [x, x]\nreturn x",
    "shared list in a text": "x = [1]\nfor i in range(30):\n    x = [x, x]\nreturn f'{x}'",
    "shared list compared": (
        "x = [1]\ny = [1]\nfor i in range(30):\n    x = [x, x]\n    y = [y, y]\nreturn x == y"
    ),
    "shared list searched": (
        "x = [1]\ny = [1]\nfor i in range(30):\n    x = [x, x]\n    y = [y, y]\nreturn x in [y]"
    ),
    "shared list ordered": (
        "x = [1]\ny = [1]\nfor i in range(30):\n    x = [x, x]\n    y = [y, y]\nreturn max(x, y)"
    ),
    "shared tuple as a key": "x = (1, 1)\nfor i in range(40):\n    x = (x, x)\nreturn {x: 1}",
    "shared tuple looked up": "x = (1, 1)\nfor i in range(40):\n    x = (x, x)\nreturn {}.get(x)",
    "shared dict handed over": (
        "x = {}\nfor i in range(30):\n    x = {'a': x, 'b': x}\nreturn echo(x)"
    ),
    "doubled list": "x = [1, 2]\nfor i in range(99):\n    x = x + x\nreturn len(x)",
    "squares": "x = 3\nfor i in range(99):\n    x = x * x\nreturn x",
    "endless loop": "for i in range(10 ** 12):\n    pass\nreturn a",
    "endless sum": "return sum(i * i for i in range(10 ** 12))",
    "endless range": "return sum(range(10 ** 12))",
    "endless zip": "return any(x < y for x, y in zip(range(1, 10 ** 12), range(10 ** 12)))",
    "growing text": "x = 'ab'\nfor i in range(99):\n    x = x.replace('a', 'ab') + x\nreturn x",
    "many long texts": "return {str(i) * 20000: i for i in range(9999)}",
    "quadratic sum": "return sum([[i] for i in range(9999)], [])",
    "long joins": "return [','.join(['x'] * 9999) for i in range(9999)]",
    "long splits": "x = 'a ' * 40000\nreturn [x.split() for i in range(9999)]",
    "long sorts": "x = list(range(9999))\nreturn [len(sorted(x)) for i in range(9999)]",
    "long searches": "x = 'x' * 50000\nreturn [x.find('x' * 20000 + 'y') for i in range(9999)]",
    "many dicts": "return [{i: {i: {i: {}}}} for i in range(9999)]",
    "large numbers as text": "x = 3 ** 2500\nreturn [str(x) for i in range(9999)]",
    "one large number often": "x = 3 ** 2500\nreturn [[x] * 9999 for i in range(99)]",
    "one long text often": "x = 'x' * 99999\nreturn [x] * 9999",
    "keys of one hash": "return {i * (2 ** 61 - 1): i for i in range(9999)}",
    "tuples of one hash": "return {(i * (2 ** 61 - 1),): i for i in range(9999)}",
    "sorts of large numbers": (
        "x = [2 ** 4000 + i * 7919 % 10007 for i in range(90)] * 99\n"
        "return [len(sorted(x)) for i in range(9999)]"
    ),
    "sorts of mixed numbers": (
        "x = list(range(4999)) + [i + 0.5 for i in range(4999)]\n"
        "return [len(sorted(x[::-7] + x)) for i in range(9999)]"
    ),
    "searches letter by letter": (
        "x = 'a' * 2499\ny = 'a' * 1248 + 'ba'\nreturn [x.count(y) for i in range(9999)]"
    ),
    "search of half a text": (
        "x = 'a' * 99999\ny = 'a' * 48000 + 'ba' + 'a' * 49900\nreturn x.find(y)"
    ),
    "many characters": "x = '\\u4e00' * 9999\nreturn [[list(x) for i in range(99)]][0]",
    "deep list": "x = []\nfor i in range(5000):\n    x = [x]\nreturn x",
}


@pytest.mark.parametrize("text", GREEDY.values(), ids=GREEDY)
def test_greedy_programs_are_stopped(
    compiled: Compile, calculator: Mapping[str, Tool], text: str
) -> None:
    """The run ends with a limit, having taken little memory."""
    lines = "".join(f"    {line}\n" for line in text.split("\n"))
    composite = compiled(f"def f(a):\n{lines}", calculator["echo"])
    tracemalloc.start()
    try:
        with pytest.raises(CompositeRunError) as stopped:
            composite.run({"a": 1})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    limits = {"fuel", "collection_items", "string_chars", "integer_bits", "nesting"}
    assert stopped.value.code in limits
    assert peak < MEMORY_MB * 1e6


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


def test_fuel_is_shared_by_what_a_loop_does(body: Body) -> None:
    """The same program passes with enough fuel and stops with less."""
    text = "x = 0\nfor i in range(a):\n    x = x + i\nreturn x"
    limits = CompositeLimits(fuel=1_000)
    assert body(text, 100, limits=limits) == 4950
    with pytest.raises(CompositeRunError, match="1000 units of work") as stopped:
        body(text, 1_000, limits=limits)
    assert stopped.value.code == "fuel"


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
    """A child that blocks can not be stopped; no further one is called."""
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
