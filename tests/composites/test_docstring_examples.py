"""Worked calls in docstrings and decorators become L4, and are checked when they are read."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agentkit import tool
from agentkit.composites.source import compose
from agentkit.errors import CompositeError
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.tool import Tool


@tool
def add(a: float, b: float) -> float:
    """A sum."""
    return a + b


TOOLS: Mapping[str, Tool] = {"add": add}


def composed(docstring: str, decorator: str = "") -> ToolDefinition:
    """A composite with that docstring."""
    lines = "\n".join(f"    {line}" if line else "" for line in docstring.splitlines())
    return compose(
        f'{decorator}def f(a: float, b: float = 0.0) -> float:\n    """{lines.lstrip()}\n    """\n'
        "    return add(a, b)\n",
        TOOLS,
    )


@pytest.mark.parametrize(
    ("shown", "arguments", "result"),
    [
        (">>> f(1)\n1.0", {"a": 1}, 1.0),
        (">>> f(1, 2)\n3", {"a": 1, "b": 2}, 3),
        (">>> f(b=-2, a=1.5)\n-0.5", {"a": 1.5, "b": -2}, -0.5),
        (">>> f(\n...     1,\n...     b=2,\n... )\n3.0", {"a": 1, "b": 2}, 3.0),
        (">>> f(1)", {"a": 1}, None),
    ],
)
def test_a_worked_call_is_an_example(
    shown: str, arguments: Mapping[str, object], result: object
) -> None:
    """Positional arguments get their names; the value below is the result."""
    definition = composed(f"Add.\n\n{shown}\n")
    assert definition.examples == (Example(arguments=arguments, result=result),)
    assert definition.text == "Add."


@pytest.mark.parametrize(
    ("shown", "line", "why"),
    [
        (">>> f(1)\nabout one", 4, "'about one' is no literal"),
        (">>> f(1)\nTraceback (most recent call last):\nValueError", 4, "is no literal"),
        (">>> g(1)\n1", 4, "it calls 'g', not 'f'"),
        (">>> f(x)\n1", 4, "'x' is no literal"),
        (">>> f(1, 2, 3)\n1", 4, "it gives 3 values for 2 parameters"),
        (">>> f(1, a=2)\n1", 4, "'a' does not name one more parameter"),
        (">>> f(c=2)\n1", 4, "'c' does not name one more parameter"),
        (">>> f(**{})\n1", 4, "'**' does not name one more parameter"),
        (">>> x = f(1)", 4, "is no expression"),
        (">>> f(1) + 1\n2", 4, "is not a plain call"),
        (">>> import os", 4, "is no expression"),
        (">>> f(1)\n{1, 2}", 4, "set is not JSON"),
        (">>> f(b'x')\n1", 4, "bytes is not JSON"),
        (">>> f(1e999)\n1", 4, "a number that JSON can not write"),
        (">>> f('one')\n1", 4, "break the declared types"),
        (">>> f(b=1)\n1", 4, "break the declared types"),
        (">>> f(1)\n'one'", 4, "the result 'one' of a worked call breaks the declared type"),
        (">>> f(1)\n1.0\n>>> f()\n2", 6, "break the declared types"),
    ],
)
def test_a_worked_call_that_is_none_is_a_problem(shown: str, line: int, why: str) -> None:
    """An example that can not be read or does not fit is told at its prompt."""
    with pytest.raises(CompositeError) as caught:
        composed(f"Add.\n\n{shown}\n")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line, problem.column) == ("example", line, 5)
    assert why in problem.message


@pytest.mark.parametrize(
    ("example", "why"),
    [
        ("{'arguments': {'a': 'x'}}", "break the declared types"),
        ("{'arguments': {}}", "break the declared types"),
        ("{'arguments': {'a': 1, 'c': 1}}", "break the declared types"),
        ("{'arguments': {'a': 1}, 'result': 'x'}", "breaks the declared type"),
    ],
)
def test_an_example_of_the_decorator_is_checked(example: str, why: str) -> None:
    """The problem quotes the example in the decorator."""
    with pytest.raises(CompositeError) as caught:
        composed("Add.", f"@composite(examples=[{example}])\n")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line, problem.column) == ("example", 2, 1)
    assert why in problem.message
