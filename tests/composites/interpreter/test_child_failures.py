"""A child that fails surfaces with the path of calls that led to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError, ModelRetry, ToolFailed
from agentkit.tools.decorator import tool
from agentkit.tools.definition import Effects, ToolDefinition
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


def test_a_child_can_not_end_the_program(compiled: Compile) -> None:
    """``SystemExit`` of a child is a failure of that child."""

    @tool
    def leave(code: int) -> int:
        """Leave."""
        raise SystemExit(code)

    with pytest.raises(CompositeRunError, match="SystemExit: 3"):
        compiled("def f():\n    return leave(3)", leave).run({})


def test_an_exception_without_a_readable_text_is_told_by_its_kind(compiled: Compile) -> None:
    """Whatever the text of an exception does, the run fails with a path."""

    class Odd(Exception):  # noqa: N818 - odd in every way
        def __str__(self) -> str:
            raise RuntimeError

    @tool
    def fail(empty: bool) -> int:  # noqa: FBT001 - a tool's parameters are keywords
        """Fail."""
        raise ValueError if empty else Odd

    composite = compiled("def f(x):\n    return fail(x)", fail)
    with pytest.raises(CompositeRunError, match=r"^f → fail: ValueError, at"):
        composite.run({"x": True})
    with pytest.raises(CompositeRunError, match="Odd: its text can not be read, RuntimeError"):
        composite.run({"x": False})


def test_stop_iteration_of_a_child_stops_no_loop(compiled: Compile) -> None:
    """A generator whose item raises ``StopIteration`` fails instead of ending early."""

    @tool
    def stop(x: int) -> int:
        """Stop."""
        raise StopIteration

    with pytest.raises(CompositeRunError, match="StopIteration"):
        compiled("def f():\n    return sum(stop(x) for x in [1])", stop).run({})


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


def test_subclasses_of_json_types_become_plain(compiled: Compile) -> None:
    """What behaves in its own way is replaced by the data that it stands for."""

    class Odd(dict[str, int]):
        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]  # not hashable, as any dict

    class Word(str):
        __slots__ = ()

    @tool
    def find(kind: str) -> Any:
        """Find."""
        return Odd(a=1) if kind == "dict" else Word("x")

    composite = compiled("def f():\n    return [find('dict') == {'a': 1}, find('word')]", find)
    result = composite.run({})
    assert result == [True, "x"]
    assert type(result[1]) is str


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


def test_a_result_that_can_not_be_read_is_refused(compiled: Compile) -> None:
    """Results of foreign types run code of their own when they are read."""

    class Broken(list[int]):
        def __iter__(self) -> Iterator[int]:
            raise RuntimeError("no")

    @tool
    def find() -> Any:
        """Find."""
        return Broken([1])

    with pytest.raises(CompositeRunError, match="Broken that can not be read: RuntimeError") as no:
        compiled("def f():\n    return find()", find).run({})
    assert (no.value.code, no.value.path) == ("unserialisable_result", ("f", "find"))


def test_a_coroutine_nobody_declared_is_refused(compiled: Compile) -> None:
    """A tool that is async without saying so is told apart from one that returned an object."""

    async def answer() -> int:
        return 1

    child = Tool(definition=ToolDefinition(name="answer"), function=answer)
    with pytest.raises(CompositeRunError, match="not declared async"):
        compiled("def f():\n    return answer()", child).run({})


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
    """A child gets the Python values that it declares; what can not be one is refused."""

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


async def test_waiting_for_a_turn_does_not_count_as_running(compiled: Compile) -> None:
    """A timeout starts when the child does, however many others were before it."""

    @tool(effects=("reads",), timeout_seconds=0.5)
    async def slow(x: int) -> int:
        """Slow."""
        await asyncio.sleep(0.05)
        return x

    text = "def f():\n    return sum(slow(x) for x in range(15))"
    composite = compiled(text, slow, limits=CompositeLimits(concurrency=1))
    assert await composite.run_async({}) == 105


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


@pytest.mark.parametrize(("effects", "calls"), [(Effects(), ["text"]), (Effects(writes=True), [])])
def test_effects_decide_who_is_checked(
    compiled: Compile, effects: Effects, calls: list[str]
) -> None:
    """A child that declares nothing is called with what the program gives it."""
    given: list[Any] = []

    def take(x: Any) -> None:
        given.append(x)
        raise ValueError

    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    definition = ToolDefinition.from_schema("take", "", schema, effects=effects)
    composite = compiled(
        "def f(x):\n    return take(x)", Tool(definition=definition, function=take)
    )
    with pytest.raises(CompositeRunError) as failed:
        composite.run({"x": "text"})
    assert given == calls
    assert failed.value.code == ("child_failed" if calls else "invalid_arguments")
