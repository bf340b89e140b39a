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
