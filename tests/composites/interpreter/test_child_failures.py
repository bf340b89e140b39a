"""A child that fails surfaces with the path of calls that led to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.errors import CompositeRunError, ModelRetry, ToolFailed
from agentkit.tools.decorator import tool
from agentkit.tools.tool import Tool

Compile = Callable[..., Composite]


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
