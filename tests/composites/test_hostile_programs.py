"""No program harms its host: hostile texts are refused or stopped, and no module runs text."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
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
from agentkit.tools.tool import Tool

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
    script = tests / "support" / "hostile_programs.py"
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
        ("eval('1')", "unknown_tool"),
        ("add(x, 1)", "unknown_tool"),
        ("(y := x)", "unknown_construct"),
        ("x" + " + x" * 5000, "too_large"),
        ("x\x00", "syntax"),
        ("", "syntax"),
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
        ("@composite(pre=['note(x)'])\ndef f(x: int) -> str:\n    ...", "unknown_tool"),
        ("@composite(post=['().__class__'])\ndef f(x: int) -> str:\n    ...", "unknown_construct"),
        ("def f(x: note('ran')) -> str:\n    ...", "annotation"),
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
    "error", [StopIteration(1), RecursionError(), MemoryError(), KeyError("x")], ids=repr
)
@pytest.mark.parametrize(
    "expression", ["[child(i) for i in x]", "list(child(i) for i in x)", "any(child(i) for i in x)"]
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


class EvilText(str):
    """Text with operators of its own."""

    __slots__ = ()

    def __mul__(self, _: Any) -> Any:
        raise SystemExit("ran")

    __add__ = __radd__ = __eq__ = __contains__ = lower = __mul__
    __hash__ = str.__hash__


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
        (EvilText, "f'{child(x)}'"),
        (lambda: EvilList([1]), "child(x)[0]"),
        (EvilList, "len(child(x))"),
        (lambda: [EvilText()], "child(x)[0] * 3"),
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


@pytest.mark.parametrize(
    ("make", "codes"),
    [
        (endless, {"unserialisable_result", "nesting"}),
        (lambda: object(), {"unserialisable_result"}),  # noqa: PLW0108 - a value a call
        (lambda: list(range(10**6)), {"collection_items", "fuel"}),
        (lambda: "a" * 10**7, {"string_chars", "fuel"}),
        (lambda: 1 << 10**6, {"integer_bits"}),
    ],
    ids=["endless", "object", "long list", "long text", "huge number"],
)
def test_a_result_beyond_the_limits_ends_the_run(make: Callable[[], Any], codes: set[str]) -> None:
    """What a child returns is held to the limits before the program goes on with it."""

    def child(x: Any) -> Any:
        return make()

    composite = composite_of(child, "def f(x):\n    y = child(x)\n    return [y, str(y)]\n")
    with pytest.raises(CompositeRunError) as stopped:
        composite.run({"x": 1})
    assert stopped.value.code in codes


# --- hostile text ----------------------------------------------------------------------------------

MEBIBYTE = 2**20


def refused(
    text: str, tools: Mapping[str, Tool], limits: CompositeLimits | None = None
) -> set[str]:
    """The codes of what is wrong, found within 64 MB."""
    tracemalloc.start()
    with pytest.raises(CompositeError) as caught:
        parse(text, tools, limits=limits)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * MEBIBYTE
    assert len(str(caught.value)) < 20_000
    return {problem.code for problem in caught.value.problems}


def test_nodes_and_nesting_have_a_limit_each(tools: Mapping[str, Tool]) -> None:
    """A program at the limit is read, one beyond it is refused."""
    text = "def f(x):\n if x:\n  return [x, -x]\n return x"  # 10 nodes, the deepest of them 5 deep
    parse(text, tools, limits=CompositeLimits(nodes=10, nesting=5))
    assert refused(text, tools, CompositeLimits(nodes=9)) == {"too_large"}
    assert refused(text, tools, CompositeLimits(nesting=4)) == {"too_large"}


PACKAGE = "agentkit.composites"
RUNNING = frozenset({"exec", "eval", "compile", "__import__", "globals", "locals", "vars"})
"""Names that run text, or that lead to what runs it."""

LOADING = frozenset(
    {"importlib", "runpy", "code", "codeop", "pickle", "marshal", "ctypes", "builtins"}
)
REFLECTING = frozenset({"getattr", "setattr", "delattr", "attrgetter", "methodcaller"})
DUNDERS = frozenset(
    {
        "__class__", "__bases__", "__subclasses__", "__globals__", "__builtins__", "__code__",
        "__mro__",
    }
)  # fmt: skip

ALLOWED = {
    f"{PACKAGE}.language": {"getattr"},  # the fields of our own nodes
    f"{PACKAGE}.problems": {"getattr"},  # the fields of our own record
    f"{PACKAGE}.guards": {"__mro__"},  # the kind of an exception, for its code
    f"{PACKAGE}.parser": {"vars"},  # a field that syntax trees have from Python 3.12 on
    # @composite reads the source of a function that a person wrote, and what that one can see
    f"{PACKAGE}.decorator": {"getattr", "vars", "__globals__", "__code__"},
}
"""What a module may use, and why."""


def dangers(module: str, tree: ast.Module) -> Iterator[str]:
    """Where a module could run text as code, or walk attributes named by text."""
    allowed = ALLOWED.get(module, set())
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            known = RUNNING if isinstance(node, ast.Name) else DUNDERS
            if name in known | REFLECTING and name not in allowed:
                yield f"{module}:{node.lineno} uses {name}"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            stem = node.module if isinstance(node, ast.ImportFrom) else ""
            names = {stem or alias.name for alias in node.names}
            if {name.split(".")[0] for name in names} & LOADING:
                yield f"{module}:{node.lineno} imports {sorted(names)}"


def test_no_module_of_the_language_runs_text(runtime_modules: Mapping[str, ast.Module]) -> None:
    """Parser, checks, interpreter and all the rest hold nothing that runs or imports text."""
    mine = {name: tree for name, tree in runtime_modules.items() if name.startswith(PACKAGE)}
    assert f"{PACKAGE}.parser" in mine
    assert [danger for name, tree in mine.items() for danger in dangers(name, tree)] == []
