"""Children that have to be waited for: neighbouring reads overlap, everything else is in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError
from agentkit.tools.decorator import tool

Compile = Callable[..., Composite]


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until something is the case."""
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")


async def run_gated(
    composite: Composite, world: Any, *gated: str, started: list[str], **arguments: Any
) -> Any:
    """Run until exactly these reads have started, then let them all go on."""
    for key in gated:
        world.gates[key] = asyncio.Event()
    running = asyncio.create_task(composite.run_async(arguments))
    await until(lambda: len(world.log) >= len(started))
    for _ in range(50):  # nothing else may start
        await asyncio.sleep(0)
    assert sorted(world.log) == sorted(f"start {key}" for key in started)
    for gate in world.gates.values():
        gate.set()
    return await running


@pytest.mark.parametrize(
    ("text", "gated", "result"),
    [
        ("x = read('a')\ny = read('b')\nreturn [x, y]", "ab", ["a", "b"]),
        ("return [read('a') + read('b')]", "ab", ["ab"]),
        ("return {'k': read('a'), 'l': [read('b'), read('c')]}", "a", {"k": "a", "l": ["b", "c"]}),
        ("return f\"{read('a')}{read('b', after=k)}\"", "ab", "ab"),
    ],
)
async def test_neighbouring_reads_overlap(
    compiled: Compile, world: Any, text: str, gated: str, result: Any
) -> None:
    """Statements and operands next to each other."""
    lines = "".join(f"    {line}\n" for line in text.split("\n"))
    composite = compiled(f"def f(k='k'):\n{lines}", *world.tools)
    assert await run_gated(composite, world, *gated, started=list(gated)) == result


async def test_a_read_that_needs_another_waits_for_it(compiled: Compile, world: Any) -> None:
    """The later one starts with the value of the earlier one, and its neighbours with it."""
    text = """
    def f():
        x = read('a')
        y = read(x + 'b')
        z = read('c')
        return [x, y, z]
    """
    composite = compiled(text, *world.tools)
    assert await run_gated(composite, world, "a", started=["a"]) == ["a", "ab", "c"]
    assert world.log[2:4] == ["start ab", "start c"]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("return read('') and read('b')", [""]),
        ("return read('b') if read('') else read('c')", ["", "c"]),
        ("return 'b' < read('a') < read('c')", ["a"]),
        ("return any(read(k) == 'a' for k in 'xab')", ["x", "a"]),
        ("return all(read(k) == 'a' for k in 'aba')", ["a", "b"]),
        ("return [read(k + '!') for k in 'ab' if read(k) == 'b']", ["a", "b", "b!"]),
        ("return list(enumerate(read(k) for k in 'ab'))", ["a", "b"]),
        ("for k in 'abc':\n    if read(k) == 'b':\n        break\nreturn k_of", ["a", "b"]),
        ("for k in 'abc':\n    if read(k) == 'b':\n        return k\nreturn ''", ["a", "b"]),
        ("return [].get(read('a'))", []),
        ("return {}.get(read('a'), read('b'))", ["a", "b"]),
    ],
)
async def test_nothing_is_called_that_python_would_not_call(
    compiled: Compile, world: Any, text: str, calls: list[str]
) -> None:
    """Short circuits, branches and ends of loops decide before anything inside starts."""
    text = text.replace("return k_of", "return 0")
    lines = "".join(f"    {line}\n" for line in text.split("\n"))
    composite = compiled(f"def f():\n{lines}", *world.tools)
    try:
        await composite.run_async({})
    except CompositeRunError as error:
        assert error.code == "type_error"  # noqa: PT017 - some texts fail on purpose
    assert [entry.removeprefix("start ") for entry in world.log if "start" in entry] == calls


async def test_two_calls_in_the_same_words_have_two_results(compiled: Compile) -> None:
    """Each call that is waited for keeps its own value, however alike they are."""
    numbers = iter(range(10))

    @tool
    async def count() -> int:
        """The next number."""
        return next(numbers)

    composite = compiled("def f():\n    return count() + 10 * count() - count()", count)
    assert await composite.run_async({}) == 0 + 10 * 1 - 2


async def test_concurrency_is_bounded(compiled: Compile, world: Any) -> None:
    """No more children run at the same time than the limits allow, wherever they stand."""
    composite = compiled(
        "def f():\n    return [" + ", ".join(f"read({i})" for i in range(20)) + "]",
        *world.tools,
        limits=CompositeLimits(concurrency=3),
    )
    assert await composite.run_async({}) == list(range(20))
    assert world.most == 3


async def test_the_first_error_of_the_program_surfaces(compiled: Compile, world: Any) -> None:
    """Not the first in time: a slow failure comes before a quick one that is written later."""
    world.gates["bad slow"] = asyncio.Event()
    text = "def f():\n    x = read('bad slow')\n    y = read('bad quick')\n    return [x, y]"
    running = asyncio.create_task(compiled(text, *world.tools).run_async({}))
    await until(lambda: "end bad quick" in world.log)
    world.gates["bad slow"].set()
    with pytest.raises(CompositeRunError, match="no bad slow") as failed:
        await running
    assert failed.value.expression == "read(key='bad slow')"


async def test_a_failure_ends_everything_before_it_surfaces(compiled: Compile, world: Any) -> None:
    """What still runs is cancelled and awaited: no task outlives the run."""
    world.gates["never"] = asyncio.Event()
    text = "def f():\n    x = read('bad')\n    y = read('never')\n    return [x, y]"
    with pytest.raises(CompositeRunError, match="no bad"):
        await compiled(text, *world.tools).run_async({})
    assert world.running == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_variable_keeps_the_value_of_its_time(compiled: Compile, world: Any) -> None:
    """A call that waits is not reached by later assignments to what it reads."""
    text = """
    def f():
        k = 'a'
        x = read(k, after=read('first'))
        k = read('b')
        y = read(k)
        return [x, y, k]
    """
    assert await compiled(text, *world.tools).run_async({}) == ["a", "b", "b"]


# --- effect order ----------------------------------------------------------------------------------


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
