"""Definitions of composites, from a text and by the decorator."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from agentkit.composites.composite import join_effects
from agentkit.composites.decorator import composite
from agentkit.composites.source import compose
from agentkit.composites.type_check import Expr
from agentkit.errors import CompositeError, CompositeRunError
from agentkit.tools.decorator import tool
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.tool import Tool


@tool
def add(a: float, b: float) -> float:
    """A sum."""
    return a + b


@tool(name="times")
def multiply(a: float, b: float) -> float:
    """A product."""
    return a * b


@tool
def power(x: float, n: int) -> float:
    """A power."""
    return float(x**n)


@tool(effects=("reads",))
def look_up(key: str) -> float:
    """A number."""
    return float(len(key))


@tool(effects=("writes",))
def store(key: str, value: float) -> None:
    """Keep a number."""


TOOLS: Mapping[str, Tool] = {
    "add": add, "mul": multiply, "pow_int": power, "look_up": look_up, "store": store,
}  # fmt: skip
QUADRATIC = '''
from agentkit import composite

@composite(
    pre=["isfinite(x)"],
    post=["is_close(result, a * x**2 + b * x + c)"],
    text=["Coefficients are finite."],
    complexity="O(1)",
    tags=["algebra", "polynomial"],
    usage_rules=["Only for real numbers."],
    examples=[{"arguments": {"a": 2, "b": 0, "c": -1, "x": 3}, "result": 17.0, "query": "2x²-1 at 3"}],
)
def quadratic_expr(a: float, b: float, c: float, x: float) -> float:
    """Evaluate the quadratic a*x^2 + b*x + c at x.

    Args:
        x: Where to evaluate.

    Returns:
        The value.

    Raises:
        OverflowError: The value is too large.
    """
    return add(add(mul(a, pow_int(x, 2)), mul(b, x)), c)
'''


def problems_of(source: str, tools: Mapping[str, Tool] = TOOLS) -> list[tuple[str, int, int]]:
    """Code, line and column of what is wrong with a text."""
    with pytest.raises(CompositeError) as caught:
        compose(source, tools)
    return [(problem.code, problem.line, problem.column) for problem in caught.value.problems]


def test_the_record_of_the_paper() -> None:
    """The composite of CoCoDA's appendix F.2 has all four levels, a program and its pins."""
    definition = compose(QUADRATIC, TOOLS, reference="quadratic.py")
    assert definition.name == "quadratic_expr"
    assert definition.signature.required == ("a", "b", "c", "x")
    assert definition.signature.result == {"type": "number", "description": "The value."}
    assert [child.name for child in definition.signature.children] == ["add", "times", "power"]
    assert definition.description.summary == "Evaluate the quadratic a*x^2 + b*x + c at x."
    assert definition.description.tags == ("algebra", "polynomial")
    assert definition.description.usage_rules == ("Only for real numbers.",)
    assert definition.specification.pre == ("isfinite(x)",)
    assert definition.specification.post == ("is_close(result, a * x**2 + b * x + c)",)
    assert definition.specification.text == (
        "Coefficients are finite.",
        "Raises OverflowError: The value is too large.",
    )
    assert definition.specification.complexity == "O(1)"
    assert [(e.arguments["x"], e.result) for e in definition.examples] == [(3, 17.0)]
    assert definition.examples[0].query == "2x²-1 at 3"
    assert (definition.origin.kind, definition.origin.reference) == ("composite", "quadratic.py")
    assert ToolDefinition.from_json(definition.to_json()) == definition


def test_effects_are_joined() -> None:
    """A composite reads and writes when its children do; what is not declared stays so."""
    text = "def f(key: str):\n    store(key, look_up(key))\n    return 1\n"
    assert compose(text, TOOLS).signature.effects == Effects(reads=True, writes=True)


def test_friendly_imports_may_stand_above() -> None:
    """Files that a type checker reads import what they need; lines keep their numbers."""
    head = (
        "from __future__ import annotations\nimport typing as t\nfrom agentkit import (\n"
        "    composite,\n    tool,\n)\n\n"
    )
    text = "@composite\ndef f(a: t.List[float]):\n    return add(a[0], 1)\n"
    assert compose(head + text, TOOLS) == compose(text, TOOLS)
    assert problems_of(f"{head}def f(a: set):\n    return add(a, 1)\n") == [("annotation", 8, 10)]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\ndef f(a):\n    return add(a, 1)\n",
        "def f(a):\n    return add(a, 1)\ndef g(a):\n    return add(a, 1)\n",
        "from typing import Any\n",
    ],
)
def test_one_function_and_nothing_else(text: str) -> None:
    """Whatever else stands in a file would have to be run, so it is refused."""
    assert problems_of(text)[0][0] in {"not_one_function", "unknown_construct"}


@pytest.mark.parametrize(
    ("decorator", "column"),
    [
        ("@tool", 2),
        ("@composite\n@composite", 2),
        ("@composite([add])", 2),
        ("@composite(colour='red')", 19),
        ("@composite(**options)", 14),
        ("@composite(pre='a > 0')", 16),
        ("@composite(pre=CONDITIONS)", 16),
        ("@composite(complexity=['O(1)'])", 23),
        ("@composite(examples={})", 21),
        ("@composite(examples=[{'result': 1}])", 21),
    ],
)
def test_a_decorator_holds_constants_only(decorator: str, column: int) -> None:
    """What is not written out is refused where it stands; nothing in a text is evaluated."""
    ((code, _, found),) = problems_of(f"{decorator}\ndef f(a: float):\n    return add(a, 1)\n")
    assert (code, found) == ("decorator", column)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("a >", "syntax"),
        ("c > 0", "unknown_name"),
        ("a > 0 and result > 0", "unknown_name"),
        ("add(a, 1) > 0", "unknown_tool"),
        ("", "syntax"),
        ("a > 0\\na > 1", "syntax"),
        ("a = 1", "syntax"),
    ],
)
def test_a_condition_is_read_when_it_is_composed(condition: str, code: str | None) -> None:
    """A precondition outside the language is a problem of the function, which quotes it."""
    text = f'@composite(pre=["{condition}"])\ndef f(a: float):\n    return add(a, 1)\n'
    found = problems_of(text)
    assert found[0][1] == 2
    assert code is None or found[0][0] == code


def test_a_worked_call_fits_the_declared_result() -> None:
    """An example whose result is of another type is a problem of the text."""
    text = "def f(a: float) -> float:\n    return add(a, 1)\n"
    example = "@composite(examples=[{'arguments': {'a': 1}, 'result': 'two'}])\n"
    assert problems_of(example + text) == [("example", 2, 1)]


BODY = "    return add(a, 1)\n"
HOSTILE = {
    "a chain of types": f"def f(a: {'int|' * 1500}int):\n{BODY}",
    "deep types": f"def f(a: {'Optional[' * 100}int{']' * 100}):\n{BODY}",
    "deep examples": f"@composite(examples={'[' * 150}{']' * 150})\ndef f(a):\n{BODY}",
    "a long condition": f"@composite(pre=['{'1+' * 3000}1'])\ndef f(a):\n{BODY}",
    "half a character in words": f"def f(a):\n    'D \\ud800'\n{BODY}",
    "a null in a condition": f"@composite(pre=['\\0'])\ndef f(a):\n{BODY}",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_refused(text: str) -> None:
    """Depth, length and half characters end as problems, whatever part of the text holds them."""
    assert problems_of(text)


# --- joined effects --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "joined", "idempotent"),
    [
        ([True, False], True, False),
        ([True, None], True, None),
        ([True, True], True, True),
        ([False, False], False, False),
        ([False, None], None, False),
        ([], False, True),
    ],
)
def test_an_effect_of_one_child_is_an_effect_of_the_composite(
    values: list[bool | None], joined: Any, idempotent: Any
) -> None:
    """True wins and False needs all, but for idempotent the reverse; else it stays undeclared."""
    found = join_effects(Effects(writes=value, idempotent=value) for value in values)
    assert (found.writes, found.idempotent) == (joined, idempotent)


@tool
def echo(value: Any) -> Any:
    """The value."""
    return value


ECHO: Mapping[str, Tool] = {"echo": echo}
ANNOTATIONS: dict[str, Any] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "Any": Any,
    "list": list,
    "List": list,
    "dict": dict,
    "list[int]": list[int],
    "dict[str, float]": dict[str, float],
    "tuple[int, str]": tuple[int, str],
    "Sequence[int]": Sequence[int],
    "Optional[int]": Optional[int],  # noqa: UP045 - old spellings are still written
    "int | None": int | None,
    "Union[int, list[str]]": Union[int, list[str]],  # noqa: UP007 - the same
    "Optional[Union[int, str]]": int | str | None,  # Optional[...] would keep no order
    "Literal['a', 'b']": Literal["a", "b"],
    "Literal[1, -1, None]": Literal[1, -1, None],  # noqa: PYI061 - the same
    "Annotated[int, 'how many']": Annotated[int, "how many"],
    "Annotated[str, Expr('row -> bool')]": Annotated[str, Expr("row -> bool")],
    "Annotated[str, 'a filter', Expr('row -> bool')]": Annotated[
        str, "a filter", Expr("row -> bool")
    ],
    "Expr['row, total -> float']": Expr["row, total -> float"],
    "typing.List[int]": list[int],
    "typing.Optional[str]": Optional[str],  # noqa: UP045 - the same
}


def real_function(annotation: Any, *default: Any) -> Any:
    """A function with one parameter and that result, as Python would define it."""

    def f(value):
        """Do it.

        Args:
            value: The value.

        Returns:
            The same.
        """

    f.__annotations__ = {"value": annotation, "return": annotation}
    f.__defaults__ = default or None
    return f


@pytest.mark.parametrize("text", ANNOTATIONS)
def test_a_text_means_what_python_means(text: str) -> None:
    """Parameters, result and words are those of a real function with the same head."""
    composed = compose(
        f'''
def f(value: {text}) -> {text}:
    """Do it.

    Args:
        value: The value.

    Returns:
        The same.
    """
    return echo(value)
''',
        ECHO,
    )
    real = tool(real_function(ANNOTATIONS[text])).definition
    assert composed.signature.parameters == real.signature.parameters
    assert list(composed.signature.properties["value"]) == list(real.signature.properties["value"])
    assert composed.signature.result == real.signature.result
    assert composed.description == real.description


@pytest.mark.parametrize(
    ("annotation", "column", "why"),
    [
        ("set[int]", 10, "not a JSON type"),
        ("list[bytes]", 15, "not a JSON type"),
        ("dict[int, str]", 15, "keys of a JSON object are text"),
        ("list[int, str]", 10, "not a JSON type"),
        ("Literal[()]", 10, "not a JSON type"),
        ("Literal[1.5]", 18, "text, integers"),
        ("Annotated[int]", 10, "not a JSON type"),
        ("Annotated[int, Field(ge=0)]", 25, "neither a text nor an Expr"),
        ("Expr['row']", 10, "does not say what goes in and out"),
        ("__import__('os').system", 10, "not a JSON type"),
        ("list[" * 80 + "int" + "]" * 80, 10, "at most 200 parts"),
        ("|".join(["int"] * 80), 10, "at most 200 parts"),
    ],
)
def test_what_has_no_schema_is_a_problem_with_its_place(
    annotation: str, column: int, why: str
) -> None:
    """A type outside the table is refused where it stands, with the types that there are."""
    with pytest.raises(CompositeError) as caught:
        compose(f"def f(row: {annotation}):\n    return echo(row)\n", ECHO)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("annotation", 1)
    assert problem.column == column + 2
    assert why in problem.message
    assert "Write int, float" in problem.advice


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


class Toolbox:
    """A class that holds composites."""

    @staticmethod
    @composite
    def above(a: float) -> float:
        """Decorators above ours come later."""
        return add(a, 1)

    @composite
    @staticmethod
    def below(a: float) -> float:
        """A static method is a function, too."""
        return add(a, 1)


def test_a_class_may_hold_composites() -> None:
    """Indented source and ``staticmethod`` on either side work."""
    assert Toolbox.above(a=1) == Toolbox.below(a=1) == 2


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
