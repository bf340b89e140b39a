"""``@composite``: a function in a file becomes a tool whose body is data."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from agentkit import tool
from agentkit.composites.decorator import composite
from agentkit.composites.source import compose
from agentkit.errors import CompositeError, CompositeRunError, UsageError
from agentkit.tools.definition import Example


@tool
def add(a: float, b: float) -> float:
    """A sum."""
    return a + b


@tool(name="times")
def multiply(a: float, b: float) -> float:
    """A product."""
    return a * b


@tool
def divide(a: float, b: float) -> float:
    """A quotient."""
    return a / b


plus = add
shop = types.ModuleType("shop")
shop.total = add  # type: ignore[attr-defined]  # a module made for this test


@composite
def twice(x: float, y: float = 1.0) -> float:
    """Twice a number, and one.

    Args:
        x: The number.
        y: What is added.

    >>> twice(2, y=0)
    4
    """
    return plus(multiply(x, 2), y)


def test_the_decorator_and_the_text_agree() -> None:
    """The same function as a text has the same definition."""
    text = '''
def twice(x: float, y: float = 1.0) -> float:
    """Twice a number, and one.

    Args:
        x: The number.
        y: What is added.

    >>> twice(2, y=0)
    4
    """
    return plus(multiply(x, 2), y)
'''
    composed = compose(text, {"plus": add, "multiply": multiply})
    assert composed == twice.definition
    assert composed.digest == twice.definition.digest


def test_the_function_itself_is_never_called() -> None:
    """The name of a child may mean something else by then; the program keeps its child."""
    calls: list[str] = []

    @tool
    def note(text: str) -> str:
        """Note something."""
        calls.append(text)
        return text

    @composite
    def note_twice(text: str) -> list:
        """Note it twice."""
        return [note(text), note(text)]

    note = None  # type: ignore[assignment]  # noqa: F811 - the closure now holds no tool
    assert note_twice(text="a") == ["a", "a"]
    assert calls == ["a", "a"]


def test_keywords_become_the_record() -> None:
    """What the decorator says is L2, L3 and L4, computed values included."""
    lowest = -10

    @composite(
        description="A ratio.",
        tags=("arithmetic",),
        usage_rules=["Only for numbers."],
        pre=[f"a > {lowest}", "b != 0"],
        post=["is_close(result * b, a)"],
        text=["Both are finite."],
        complexity="O(1)",
        examples=[Example(arguments={"a": 1, "b": 2}, result=0.5), {"arguments": {"a": 0, "b": 1}}],
    )
    def ratio(a: float, b: float) -> float:
        return divide(a, b)

    definition = ratio.definition
    assert definition.text == "A ratio.\nOnly for numbers."
    assert definition.description.tags == ("arithmetic",)
    assert definition.specification.pre == ("a > -10", "b != 0")
    assert definition.specification.post == ("is_close(result * b, a)",)
    assert definition.specification.text == ("Both are finite.",)
    assert definition.specification.complexity == "O(1)"
    assert [example.result for example in definition.examples] == [0.5, None]


class Toolbox:
    """A class that holds composites."""

    @staticmethod
    @composite
    def above(a: float) -> float:
        """Decorators above ours come later."""
        return add(a, 1)

    @composite
    @staticmethod
    def below(a: float) -> str:
        """A static method is a function, too.

        Its text has lines that lean to the left:
        """
        return (
            f"{add(a, 1)}"
            """
left
"""
        )


def test_a_class_may_hold_composites() -> None:
    """Indented source and ``staticmethod`` on either side work; texts keep their lines."""
    assert Toolbox.above(a=1) == 2
    assert Toolbox.below(a=1) == "2\nleft\n"


def test_it_is_called_like_the_function() -> None:
    """Arguments may stand by position, by name, or both; a wrong number is told with the names."""
    assert twice(2) == twice(2, 1) == twice(2, y=1) == 5
    with pytest.raises(CompositeRunError, match="takes 2 arguments by position, got 3; its param"):
        twice(1, 2, 3)
    with pytest.raises(CompositeRunError, match="'x' is given by position and by name"):
        twice(1, x=2)


def test_problems_have_lines_of_the_file() -> None:
    """An editor can jump to what is wrong."""
    with pytest.raises(CompositeError) as caught:

        @composite(pre=["a >"])
        def bad(a: bytes) -> float:
            """It is wrong in several ways."""
            return add(a, 1)

    here = Path(__file__).read_text(encoding="utf-8").splitlines()
    problems = caught.value.problems
    assert {problem.code for problem in problems} == {"annotation", "syntax"}
    found = {problem.code: here[problem.line - 1][problem.column - 1 :] for problem in problems}
    assert found["annotation"].startswith("bytes")
    assert found["syntax"].startswith("def bad")
    assert Path(__file__).name in str(caught.value)


def test_other_decorators_below_are_refused() -> None:
    """What another decorator makes of the function is not in its text."""

    def shouting(function: Any) -> Any:
        return function

    with pytest.raises(CompositeError) as caught:

        @composite
        @shouting
        def loud(a: float) -> float:
            """Loud."""
            return add(a, 1)

    assert [problem.code for problem in caught.value.problems] == ["decorator"]


@pytest.mark.parametrize("option", ["tags", "usage_rules", "pre", "post", "text"])
def test_one_string_is_not_a_collection(option: str) -> None:
    """A forgotten bracket would make one condition of each letter."""
    with pytest.raises(UsageError, match=rf"write {option}=\['a'\]"):
        composite(**{option: "a"})  # type: ignore[call-overload]  # the mistake is the point
