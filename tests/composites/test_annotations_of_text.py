"""Annotations in a text give the schemas that Python's own resolution of them gives."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from agentkit.composites.problems import Fault
from agentkit.composites.source import compose
from agentkit.composites.type_check import Expr, read_annotation
from agentkit.errors import CompositeError, UsageError
from agentkit.tools import definition_from_function
from agentkit.tools.decorator import tool
from agentkit.tools.tool import Tool


@tool
def echo(value: Any) -> Any:
    """The value."""
    return value


TOOLS: Mapping[str, Tool] = {"echo": echo}
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
        TOOLS,
    )
    real = definition_from_function(real_function(ANNOTATIONS[text]))
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
        ("list[" * 12 + "int" + "]" * 12, 65, "nest at most"),
        ("|".join(["int"] * 60), 10, "at most 50 branches"),
    ],
)
def test_what_has_no_schema_is_a_problem_with_its_place(
    annotation: str, column: int, why: str
) -> None:
    """A type outside the table is refused where it stands, with the types that there are."""
    with pytest.raises(CompositeError) as caught:
        compose(f"def f(row: {annotation}):\n    return echo(row)\n", TOOLS)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("annotation", 1)
    assert problem.column == column + 2
    assert why in problem.message
    assert "Write int, float" in problem.advice


def test_an_annotation_is_never_evaluated() -> None:
    """Reading an annotation looks names up in a table, not in Python."""
    node = ast.parse("list[breakpoint()]", mode="eval").body
    assert isinstance(read_annotation(node, place="it"), Fault)


@pytest.mark.parametrize("form", ["", "row", "-> bool", "row -> frame", "1 -> bool", "a b -> bool"])
def test_an_expression_type_says_what_goes_in_and_out(form: str) -> None:
    """Names, an arrow and a JSON type; anything else is a mistake of the author."""
    with pytest.raises(UsageError, match="does not say what goes in and out"):
        Expr(form)
