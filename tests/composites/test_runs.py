"""Runs of composites, with children that answer at once and that are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.composites.parser import read_source
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeError, CompositeRunError, ModelRetry, ToolFailed, UsageError
from agentkit.tools.decorator import tool
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

Compile = Callable[..., Composite]


def test_defaults_fill_what_the_caller_leaves_out(compiled: Compile) -> None:
    """A parameter with a default may be missing, also when the default is None."""
    composite = compiled("def f(a, b=2, c=None):\n    return [a, b, c]")
    assert composite.run({"a": 1}) == [1, 2, None]
    assert composite.run({"a": 1, "c": 3}) == [1, 2, 3]


@pytest.mark.parametrize("arguments", [{}, {"b": 1}, {"a": 1, "z": 2}])
def test_wrong_arguments_are_refused(compiled: Compile, arguments: Mapping[str, Any]) -> None:
    """A missing or unknown argument is named."""
    composite = compiled("def f(a, b=2):\n    return a")
    with pytest.raises(CompositeRunError, match=r"f: .*its parameters are: a, b") as refused:
        composite.run(arguments)
    assert refused.value.code == "invalid_arguments"


def test_a_child_that_is_not_there_is_refused_at_once() -> None:
    """A composite cannot be made without its children, or with one that has no function."""
    program = read_source("def f(): return gone()", None, stored_as="f").program
    with pytest.raises(CompositeError) as missing:
        Composite(program, {}, name="f")
    unbound = Tool(definition=ToolDefinition(name="gone"))
    with pytest.raises(CompositeError) as without:
        Composite(program, {"gone": unbound}, name="f")
    codes = [error.value.problems[0].code for error in (missing, without)]
    assert codes == ["unbound_child"] * 2


def test_a_composite_that_has_to_wait_says_so(compiled: Compile, world: Any) -> None:
    """``run`` names the children that need an event loop."""
    composite = compiled("def f(a):\n    return read(a)", *world.tools)
    assert composite.needs_event_loop
    with pytest.raises(UsageError, match=r"'read'.*run_async"):
        composite.run({"a": 1})


Body = Callable[..., Any]


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


@pytest.mark.parametrize("signal", [ModelRetry, ToolFailed])
def test_signals_to_the_model_keep_their_kind(
    compiled: Compile, signal: type[ModelRetry | ToolFailed]
) -> None:
    """The model reads which of the inner tools speaks."""

    class Special(signal):  # type: ignore[misc,valid-type]  # a tool author's own
        def __init__(self) -> None:
            super().__init__("we are closed on Sunday")

    @tool
    def book(day: str) -> str:
        """Book."""
        raise Special

    with pytest.raises(signal) as raised:
        compiled("def trip(day):\n    return book(day)", book).run({"day": "Sunday"})
    assert raised.value.message == "trip → book: we are closed on Sunday"
    assert type(raised.value) is signal
    assert isinstance(raised.value.__cause__, Special)


def test_results_are_read_as_a_model_would_see_them(compiled: Compile) -> None:
    """Dates, dataclasses and tuples in them become JSON data that the program can work with."""

    @dataclass
    class Stay:
        day: date
        nights: int

    @tool
    def find() -> Any:
        """Find."""
        return [Stay(date(2025, 1, 2), 3)]

    composite = compiled("def f():\n    return find()[0]['day'] + '!'", find)
    assert composite.run({}) == "2025-01-02!"


@pytest.mark.parametrize("value", [object(), float("nan"), open])
def test_a_result_that_json_can_not_hold_is_refused(compiled: Compile, value: Any) -> None:
    """The run says which child returned it. Numbers are let through: programs can test them."""

    @tool
    def find() -> Any:
        """Find."""
        return value

    composite = compiled("def f():\n    return find()", find)
    if isinstance(value, float):
        assert repr(composite.run({})) == "nan"
    else:
        with pytest.raises(CompositeRunError) as refused:
            composite.run({})
        assert (refused.value.code, refused.value.path) == ("unserialisable_result", ("f", "find"))


def test_arguments_of_a_child_that_writes_are_checked(compiled: Compile) -> None:
    """What breaks its schema never reaches it; a child that only computes fails by itself."""
    seen: list[Any] = []

    @tool(effects=("writes",))
    def save(count: int) -> int:
        """Save."""
        seen.append(count)
        return count

    composite = compiled("def f(x):\n    return save(x)", save)
    assert composite.run({"x": 1}) == 1
    with pytest.raises(CompositeRunError, match="must be an integer") as refused:
        composite.run({"x": "many"})
    assert (refused.value.code, refused.value.path) == ("invalid_arguments", ("f", "save"))
    assert seen == [1]


async def test_a_slow_child_times_out_with_its_path(compiled: Compile) -> None:
    """The child's own timeout counts, and is told apart from a TimeoutError of its own."""

    @tool(effects=("reads",), timeout_seconds=0.02)
    async def slow(kind: str) -> str:
        """Slow."""
        if kind == "raises":
            raise TimeoutError
        await asyncio.sleep(30)
        return kind

    composite = compiled("def f(kind):\n    return slow(kind)", slow)
    codes = []
    for kind in ("waits", "raises"):
        with pytest.raises(CompositeRunError) as failed:
            await composite.run_async({"kind": kind})
        assert failed.value.path == ("f", "slow")
        codes.append(failed.value.code)
    assert codes == ["child_timeout", "child_failed"]


async def test_cancelling_passes_through(compiled: Compile, world: Any) -> None:
    """A run that is cancelled ends as cancelled, not as failed, and takes its children along."""
    world.gates["never"] = asyncio.Event()
    composite = compiled("def f():\n    x = read('never')\n    return [x, read('b')]", *world.tools)
    running = asyncio.create_task(composite.run_async({}))
    while not world.running:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert world.running == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


Compile_async = Callable[..., Composite]


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
    compiled: Compile_async, world: Any, text: str, gated: str, result: Any
) -> None:
    """Statements and operands next to each other."""
    lines = "".join(f"    {line}\n" for line in text.split("\n"))
    composite = compiled(f"def f(k='k'):\n{lines}", *world.tools)
    assert await run_gated(composite, world, *gated, started=list(gated)) == result


async def test_a_read_that_needs_another_waits_for_it(compiled: Compile_async, world: Any) -> None:
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
    compiled: Compile_async, world: Any, text: str, calls: list[str]
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


async def test_the_first_error_of_the_program_surfaces(compiled: Compile_async, world: Any) -> None:
    """Not the first in time: a slow failure comes before a quick one that is written later."""
    world.gates["bad slow"] = asyncio.Event()
    text = "def f():\n    x = read('bad slow')\n    y = read('bad quick')\n    return [x, y]"
    running = asyncio.create_task(compiled(text, *world.tools).run_async({}))
    await until(lambda: "end bad quick" in world.log)
    world.gates["bad slow"].set()
    with pytest.raises(CompositeRunError, match="no bad slow") as failed:
        await running
    assert failed.value.expression == "read(key='bad slow')"


async def test_a_failure_ends_everything_before_it_surfaces(
    compiled: Compile_async, world: Any
) -> None:
    """What still runs is cancelled and awaited: no task outlives the run."""
    world.gates["never"] = asyncio.Event()
    text = "def f():\n    x = read('bad')\n    y = read('never')\n    return [x, y]"
    with pytest.raises(CompositeRunError, match="no bad"):
        await compiled(text, *world.tools).run_async({})
    assert world.running == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- effect order ----------------------------------------------------------------------------------


async def test_a_write_waits_for_all_that_is_before_it(compiled: Compile_async, world: Any) -> None:
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
    compiled: Compile_async, world: Any, expression: str, log: list[str]
) -> None:
    """Nothing is written after the place at which Python would have failed."""
    composite = compiled(f"def f(a):\n    return {expression}", *world.tools)
    try:
        await composite.run_async({"a": 0})
    except CompositeRunError as error:
        assert error.code in {"zero_division", "type_error", "child_failed"}  # noqa: PT017 - some fail on purpose
    assert world.log == log
