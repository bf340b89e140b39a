"""A program does what the same Python function does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentkit.composites import language as ir
from agentkit.composites.composite import Composite
from agentkit.errors import CompositeError, CompositeRunError, UsageError
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

Compile = Callable[..., Composite]
Body = Callable[..., Any]


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


@pytest.mark.parametrize(
    "text",
    [
        "1 < a[0] + 1 <= 2 < 3",
        "a[0] and a[1] or b",
        "[x * y for x, y in zip(a, range(3)) if x if y >= 0]",
        "{k: v for k, v in {'p': 1, 'q': 2}.items() if v > 1}",
        "sum(x for x in a) + max(a) - min(x * 2 for x in a)",
        "f'{a[0]}{{}}:{a} {b}'",
        "(a[0], 2)[::-1]",
        "'a,b'.split(',')[-1].upper() + '-'.join(str(x) for x in a)",
        "sorted(a, reverse=True)",
        "[any(x > 1 for x in a), all([]), any([0, 3])]",
        "round(2.675, 2), round(2.5), -7 // 2, 7 % -3, 2 ** -1, True + True",
        "a == [1, 2] and a is not None and 2 in a and 3 not in a",
        "sum([[1], [2]], []), list('ab'), list({'x': 1}), len(range(0, 10, 3))",
        "{'x': 1}.get('y', 2), [3, 4].index(4), (1, 1).count(1), 'abcb'.find('b')",
    ],
)
def test_expressions_equal_those_of_python(body: Body, text: str) -> None:
    """Values and their types are CPython's own."""
    import math

    names = {
        "isfinite": math.isfinite,
        "is_close": lambda a, b, tolerance=1e-9: math.isclose(
            a, b, rel_tol=tolerance, abs_tol=tolerance
        ),
    }
    expected = eval(text, {**names, "a": [1, 2], "b": None})  # the test's own text
    assert repr(body(f"return {text}", [1, 2])) == repr(expected)


def test_a_child_that_is_not_there_is_refused_at_once() -> None:
    """A composite can not be made without its children, or with one that has no function."""
    call = ir.Call(child="gone")
    program = ir.Program(parameters=(), body=(ir.Return(value=call),))
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
