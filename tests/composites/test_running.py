"""Runs of composites: what they compute, their limits, and children that fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
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
    assert codes == ["missing_child", "unbound_child"]


def test_a_composite_that_has_to_wait_says_so(compiled: Compile, world: Any) -> None:
    """``run`` names the children that need an event loop."""
    composite = compiled("def f(a):\n    return read(a)", *world.tools)
    assert composite.needs_event_loop
    with pytest.raises(UsageError, match=r"'read'.*run_async"):
        composite.run({"a": 1})


def test_what_the_trace_tells(compiled: Compile, calculator: Mapping[str, Tool]) -> None:
    """Each call is told when it is over: path, arguments, result or error, place in the program."""
    calls: list[Any] = []
    composite = compiled(
        "def f(a):\n    return div(add(a, 1), 0)", calculator["add"], calculator["div"]
    )
    with pytest.raises(CompositeRunError):
        composite.run({"a": 1}, trace=calls.append)
    first, second = calls
    assert (first.name, first.path) == ("add", ("f", "add"))
    assert (first.arguments, first.result, first.error) == ({"a": 1, "b": 1}, 2, None)
    assert (second.result, second.error.code) == (None, "child_failed")
    assert first.sequence < second.sequence


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


@pytest.fixture
def ratio(compiled: Compile, calculator: Mapping[str, Tool]) -> Composite:
    """A quotient by way of a child."""
    return compiled("def ratio(total, count):\n    return div(total, count)", calculator["div"])


def test_an_exception_becomes_the_error_of_the_run(ratio: Composite) -> None:
    """It says who failed, how, and at which call; the exception is its cause."""
    with pytest.raises(CompositeRunError) as failed:
        ratio.run({"total": 1, "count": 0})
    error = failed.value
    assert str(error) == (
        "ratio → div: ZeroDivisionError: division by zero, at `div(a=total, b=count)`"
    )
    assert (error.code, error.path) == ("child_failed", ("ratio", "div"))
    assert error.expression == "div(a=total, b=count)"
    assert type(error.__cause__) is ZeroDivisionError


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


def test_arguments_are_converted_for_the_child(compiled: Compile) -> None:
    """A child gets the Python values that it declares; what cannot be one is refused."""

    @tool
    def weekday(day: date) -> int:
        """Number of the day."""
        return day.weekday()

    composite = compiled("def f(day):\n    return weekday(day)", weekday)
    assert composite.run({"day": "2025-01-06"}) == 0
    with pytest.raises(CompositeRunError) as refused:
        composite.run({"day": "soon"})
    assert refused.value.code == "invalid_arguments"


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


async def test_a_blocking_child_runs_in_a_thread(compiled: Compile) -> None:
    """A sync function that looks at the world does not hold the event loop up."""
    released = threading.Event()

    @tool(effects=("reads",))
    def wait() -> str:
        """Wait."""
        assert released.wait(10)
        return threading.current_thread().name

    composite = compiled("def f():\n    return wait()", wait)
    assert composite.needs_event_loop
    running = asyncio.create_task(composite.run_async({}))
    await asyncio.sleep(0.01)
    released.set()
    assert await running == "agentkit-tool"


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
