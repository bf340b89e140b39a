"""Calls that may change something keep the order of the program, whatever overlaps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.errors import CompositeRunError

Compile = Callable[..., Composite]


async def test_a_write_waits_for_all_that_is_before_it(compiled: Compile, world: Any) -> None:
    """It starts when every earlier statement has succeeded, and what follows starts after it."""
    text = """
    def f():
        x = read('a')
        y = read('b')
        write('w')
        z = read('c')
        return [x, y, z]
    """
    await compiled(text, *world.tools).run_async({})
    assert world.log == [
        "start a", "start b", "end a", "end b", "write w", "wrote w", "start c", "end c",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["write", "guess"])
async def test_writes_never_overlap(compiled: Compile, world: Any, name: str) -> None:
    """A tool that declares nothing is treated as one that writes."""
    text = f"""
    def f(keys):
        x = {name}('first')
        y = [{name}(each) for each in keys]
        z = {name}('b') + {name}('c')
        for key in keys:
            {name}(key)
        return [x, y, z]
    """
    await compiled(text, *world.tools).run_async({"keys": ["1", "2"]})
    order = ["first", "1", "2", "b", "c", "1", "2"]
    assert world.log == [f"{word} {key}" for key in order for word in ("write", "wrote")]


async def test_a_failed_read_keeps_the_write_from_happening(compiled: Compile, world: Any) -> None:
    """Also when the read is slow and its value is not needed for the write."""
    world.gates["bad"] = asyncio.Event()
    text = "def f():\n    x = read('bad')\n    write('w')\n    return x"
    running = asyncio.create_task(compiled(text, *world.tools).run_async({}))
    for _ in range(20):
        await asyncio.sleep(0)
    world.gates["bad"].set()
    with pytest.raises(CompositeRunError, match="no bad"):
        await running
    assert world.log == ["start bad", "end bad"]


@pytest.mark.parametrize(
    ("expression", "log"),
    [
        ("[1 / a, write('w')]", []),
        ("[write('v'), 1 / a, write('w')]", ["write v", "wrote v"]),
        ("sum(write(k) for k in ['v', 'w'])", ["write v", "wrote v"]),
        ("sum([read('bad'), write('w')])", ["start bad", "end bad"]),
        (
            "[read('r'), write('w'), read('s')]",
            ["start r", "end r", "write w", "wrote w", "start s", "end s"],
        ),
        ("any(write(k) == 'v' for k in 'uvw')", ["write u", "wrote u", "write v", "wrote v"]),
        ("write('v') and '' and write('w')", ["write v", "wrote v"]),
        ("a.upper() + write('v')", []),
        ("a.join([write('v')])", []),
        ("{write('v'): 1 / a, 2: write('w')}", ["write v", "wrote v"]),
    ],
)
async def test_expressions_with_writes_go_step_by_step(
    compiled: Compile, world: Any, expression: str, log: list[str]
) -> None:
    """Nothing is written after the place at which Python would have failed."""
    composite = compiled(f"def f(a):\n    return {expression}", *world.tools)
    try:
        await composite.run_async({"a": 0})
    except CompositeRunError as error:
        assert error.code in {"zero_division", "type_error", "child_failed"}  # noqa: PT017 - some fail on purpose
    assert world.log == log
