"""Programs that mean harm are refused with the right code and place, or stopped in time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.hostile_programs import (
    REFUSED_PROGRAMS,
    STOPPED_PROGRAMS,
    RefusedProgram,
    StoppedProgram,
)
from support.random_children import ChildrenInUse

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse, parse_expression
from agentkit.composites.problems import CompositeLimits
from agentkit.composites.source import compose
from agentkit.errors import CompositeError, CompositeRunError
from agentkit.tools.decorator import tool
from agentkit.tools.definition import Effects

MEMORY_MB = 64


@pytest.fixture
def children() -> ChildrenInUse:
    """The children of random programs, with an empty log."""
    return ChildrenInUse()


@pytest.mark.parametrize("hostile", REFUSED_PROGRAMS, ids=lambda hostile: hostile.name)
def test_a_text_outside_the_language_is_refused(
    hostile: RefusedProgram, children: ChildrenInUse
) -> None:
    """The refusal names the code and the place, advises, and nothing has run."""
    with pytest.raises(CompositeError) as refused:
        parse(hostile.source, children.tools)
    problems = refused.value.problems
    found = [problem for problem in problems if problem.code == hostile.code]
    assert found, problems
    if hostile.line:
        places = [(problem.line, problem.column) for problem in found]
        assert (hostile.line, hostile.column) in places
    assert all(problem.message and problem.advice for problem in problems)
    assert children.log == []


@pytest.mark.parametrize("hostile", STOPPED_PROGRAMS, ids=lambda hostile: hostile.name)
def test_a_program_that_asks_for_too_much_is_stopped(
    hostile: StoppedProgram, children: ChildrenInUse
) -> None:
    """The run ends with the code of the limit, and says where."""
    program = parse(hostile.source, children.tools).program
    composite = Composite(program, children.by_name, name="f")
    with pytest.raises(CompositeRunError) as stopped:
        composite.run(hostile.arguments)
    assert stopped.value.code in hostile.codes
    assert stopped.value.path[:1] == ("f",)


def test_hostile_programs_take_little_memory(project_root: Path) -> None:
    """Reading and running all of them leaves the process within 64 MB of where it started."""
    tests = project_root / "tests"
    script = tests / "support" / "hostile_memory.py"
    paths = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < MEMORY_MB


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("().__class__", "unknown_construct"),
        ("'{0.__class__}'.format(x)", "unknown_method"),
        ("eval('1')", "unknown_tool"),
        ("add(x, 1)", "unknown_tool"),
        ("x; y", "syntax"),
        ("x = 1", "syntax"),
        ("(y := x)", "unknown_construct"),
        ("lambda: x", "unknown_construct"),
        ("x if x else unknown", "unknown_name"),
        ("[i for i in [j for j in x]]", "nested_comprehension"),
        ("-" * 5000 + "x", "too_large"),
        ("x" + " + x" * 5000, "too_large"),
        ("x\x00", "syntax"),
        ("\ud800", "syntax"),
        ("", "syntax"),
        ("# x", "syntax"),
    ],
)
def test_a_hostile_condition_is_refused(text: str, code: str) -> None:
    """A condition can do no more than a program, and call no child."""
    with pytest.raises(CompositeError) as refused:
        parse_expression(text, ("x",))
    assert code in {problem.code for problem in refused.value.problems}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("@note('ran')\ndef f(x: int) -> str:\n    ...", "decorator"),
        ("@composite(pre=[note('ran')])\ndef f(x: int) -> str:\n    ...", "decorator"),
        ("@composite(**note('ran'))\ndef f(x: int) -> str:\n    ...", "decorator"),
        ("@composite(pre=['note(x)'])\ndef f(x: int) -> str:\n    ...", "unknown_tool"),
        ("@composite(post=['().__class__'])\ndef f(x: int) -> str:\n    ...", "unknown_construct"),
        ("def f(x: note('ran')) -> str:\n    ...", "annotation"),
        ("def f(x: [int for i in note('ran')]) -> str:\n    ...", "annotation"),
        ("def f(x: int) -> note('ran'):\n    ...", "annotation"),
        ("def f(x: 'note(1)') -> str:\n    ...", "annotation"),
        ("def f(x: int = note('ran')) -> str:\n    ...", "parameter"),
    ],
)
def test_code_around_the_body_is_refused_and_does_not_run(
    text: str, code: str, children: ChildrenInUse
) -> None:
    """Decorators, annotations and defaults are read, never run."""
    body = (
        '"""Does something.\n\n    Args:\n        x: A number.\n    """\n    return label(value=x)'
    )
    with pytest.raises(CompositeError) as refused:
        compose(text.replace("...", body), children.by_name)
    assert code in {problem.code for problem in refused.value.problems}, refused.value
    assert children.log == []


# --- children -------------------------------------------------------------------------------------


def composite_of(function: Callable[..., Any], text: str, **limits: Any) -> Composite:
    """A composite over one child named ``child`` that is pure as far as its definition says."""
    child = tool(function, name="child", effects=Effects(reads=False, writes=False))
    tools = {"child": child}
    program = parse(text, tools).program
    return Composite(program, tools, name="f", limits=CompositeLimits(**limits))


@pytest.mark.parametrize(
    "error",
    [
        StopIteration(1),
        StopAsyncIteration(),
        RecursionError(),
        MemoryError(),
        KeyError("x"),
        OSError(5),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "expression",
    ["[child(i) for i in x]", "list(child(i) for i in x)", "any(child(i) for i in x)"],
)
def test_what_a_child_raises_is_its_failure(error: BaseException, expression: str) -> None:
    """No exception of a child passes for one of the program, or for the end of a generator."""

    def child(i: int) -> int:
        raise error

    composite = composite_of(child, f"def f(x):\n    return {expression}\n")
    with pytest.raises(CompositeRunError) as failed:
        composite.run({"x": [1, 2]})
    assert failed.value.code == "child_failed"
    assert failed.value.path == ("f", "child")
    assert failed.value.__cause__ is error


def test_an_interrupt_passes_through() -> None:
    """Ctrl-C ends the process, not the composite."""

    def child(i: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        composite_of(child, "def f(x):\n    return child(x)\n").run({"x": 1})


class EvilText(str):
    """Text with operators of its own."""

    __slots__ = ()

    def __mul__(self, _: Any) -> Any:
        raise SystemExit("ran")

    __add__ = __radd__ = __eq__ = __contains__ = lower = __mul__
    __hash__ = str.__hash__


class EvilNumber(int):
    """A number with operators of its own."""

    def __add__(self, _: Any) -> Any:
        raise SystemExit("ran")

    __radd__ = __eq__ = __lt__ = __bool__ = __index__ = __mul__ = __add__
    __hash__ = int.__hash__


class EvilList(list[Any]):
    """A list with operators of its own."""

    def __add__(self, _: Any) -> Any:
        raise SystemExit("ran")

    __getitem__ = __contains__ = __eq__ = __mul__ = __add__
    __hash__ = None  # type: ignore[assignment] - lists have none


@pytest.mark.parametrize(
    ("make", "expression"),
    [
        (EvilText, "child(x) * 3"),
        (EvilText, "child(x) + 'b'"),
        (EvilText, "child(x) == 'a'"),
        (EvilText, "child(x).lower()"),
        (EvilText, "f'{child(x)}'"),
        (EvilNumber, "child(x) + 1"),
        (EvilNumber, "1 if child(x) else 2"),
        (EvilNumber, "[1, 2, 3, 4][child(x)]"),
        (lambda: EvilList([1]), "child(x)[0]"),
        (EvilList, "len(child(x))"),
        (EvilList, "child(x) + [2]"),
        (lambda: [EvilText()], "child(x)[0] * 3"),
        (lambda: {"a": EvilNumber()}, "child(x)['a'] + 1"),
    ],
)
def test_a_result_brings_no_code_along(make: Callable[[], Any], expression: str) -> None:
    """Objects that only look like JSON data run none of their methods in a program."""

    def child(x: Any) -> Any:
        return make()

    composite = composite_of(child, f"def f(x):\n    return {expression}\n")
    assert code_of_run(composite) in {"returned", "unserialisable_result", "opaque_value"}


def code_of_run(composite: Composite) -> str:
    """The code that a run of one argument ends with."""
    try:
        composite.run({"x": 1})
    except CompositeRunError as error:
        return error.code
    return "returned"


def endless() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


def deep() -> list[Any]:
    """A hundred thousand lists in each other."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("make", "codes"),
    [
        (endless, {"unserialisable_result", "nesting"}),
        (deep, {"unserialisable_result", "nesting"}),
        (lambda: object(), {"unserialisable_result"}),  # noqa: PLW0108 - a value a call
        (lambda: list(range(10**6)), {"collection_items", "fuel"}),
        (lambda: "a" * 10**7, {"string_chars", "fuel"}),
        (lambda: 1 << 10**6, {"integer_bits"}),
    ],
    ids=["endless", "deep", "object", "long list", "long text", "huge number"],
)
def test_a_result_beyond_the_limits_ends_the_run(make: Callable[[], Any], codes: set[str]) -> None:
    """What a child returns is held to the limits before the program goes on with it."""

    def child(x: Any) -> Any:
        return make()

    composite = composite_of(child, "def f(x):\n    y = child(x)\n    return [y, str(y)]\n")
    with pytest.raises(CompositeRunError) as stopped:
        composite.run({"x": 1})
    assert stopped.value.code in codes


async def test_a_child_that_never_answers_meets_the_deadline() -> None:
    """The deadline covers waiting, and the child is cancelled."""
    cancelled = asyncio.Event()

    async def child(x: int) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return x

    composite = composite_of(child, "def f(x):\n    return child(x)\n", deadline_seconds=0.5)
    with pytest.raises(CompositeRunError) as stopped:
        await composite.run_async({"x": 1})
    assert stopped.value.code == "deadline"
    assert cancelled.is_set()


async def test_cancelling_a_run_cancels_its_children() -> None:
    """A run that is cancelled leaves no child behind."""
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def child(x: int) -> int:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return x

    composite = composite_of(child, "def f(x):\n    return [child(i) for i in x]\n")
    run = asyncio.ensure_future(composite.run_async({"x": [1, 2, 3]}))
    await asyncio.wait({run, asyncio.ensure_future(started.wait())}, return_when="FIRST_COMPLETED")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert cancelled.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}
