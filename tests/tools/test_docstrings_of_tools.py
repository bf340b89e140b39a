"""Docstrings of every usual style become the words of a tool."""

from __future__ import annotations

import time

import pytest

from agentkit.tools import Example, definition_from_function
from agentkit.tools.sources.docstrings import read_docstring


def google(make: str, price: float = 3.0) -> list[str]:
    """Find cars.

    Only cars in stock
    are found.

    Args:
        make: The brand.
        price (float): Most that may be paid,
            in euros.

    Returns:
        Names of cars.

    Raises:
        ValueError: If the price is negative.
    """
    return []


def numpy(make: str, price: float = 3.0) -> list[str]:
    """Find cars.

    Only cars in stock
    are found.

    Parameters
    ----------
    make : str
        The brand.
    price : float, optional
        Most that may be paid,
        in euros.

    Returns
    -------
    list of str
        Names of cars.

    Raises
    ------
    ValueError
        If the price is negative.
    """  # noqa: D416 - NumPy's sections have no colon
    return []


def rest(make: str, price: float = 3.0) -> list[str]:
    """Find cars.

    Only cars in stock
    are found.

    :param make: The brand.
    :param float price: Most that may be paid,
        in euros.
    :returns: Names of cars.
    :raises ValueError: If the price is negative.
    """
    return []


@pytest.mark.parametrize("function", [google, numpy, rest])
def test_styles_say_the_same(function) -> None:
    """Google, NumPy and reST give the same definition."""
    definition = definition_from_function(function)
    assert definition.description.summary == "Find cars.\n\nOnly cars in stock\nare found."
    assert definition.description.parameters == {
        "make": "The brand.",
        "price": "Most that may be paid, in euros.",
    }
    assert definition.specification.text == ("Raises ValueError: If the price is negative.",)
    assert definition.signature.result is not None
    assert definition.signature.result["description"] == "Names of cars."


def documented(text: str, times: int = 1) -> str:
    """Repeat a text.

    Args:
        text: What to repeat.
        times: How often.

    Examples:
        >>> documented("ab", times=2)
        'abab'
        >>> documented(
        ...     "x",
        ... )
        'x'

        >>> documented("q" + "r")
        'qr'

        Empty texts stay empty.
    """
    return text * times


def test_worked_calls_become_examples() -> None:
    """Calls with literal arguments are L4 examples; other examples stay in the summary."""
    definition = definition_from_function(documented)
    assert definition.examples == (
        Example(arguments={"text": "ab", "times": 2}, result="abab"),
        Example(arguments={"text": "x"}, result="x"),
    )
    assert definition.description.summary == (
        'Repeat a text.\n\nExamples:\n>>> documented("q" + "r")\n\'qr\'\n\nEmpty texts stay empty.'
    )


@pytest.mark.parametrize(
    "call",
    [
        "other(1)",
        "add(1, 2, 3)",
        "add(*[1])",
        "add({1, 2})",
        "add(x)",
        "x = 1",
    ],
)
def test_what_is_not_a_plain_call_stays_text(call) -> None:
    """An example that is not a call with literals is kept word for word."""
    found = read_docstring(
        f"Add.\n\nExamples:\n    >>> {call}\n    3\n", function_name="add", parameters=("a", "b")
    )
    assert found.examples == ()
    assert call in found.summary


PUMPS = {
    "brackets": lambda n: "x " + "(" * n + ":",
    "spaces and brackets": lambda n: "x" + " " * n + "(" * n + ":",
    "spaces": lambda n: "x" + " " * n + "y : z",
    "underscores": lambda n: "param x" + "_" * n + "!",
    "colons": lambda n: ":" * n,
    "dashes": lambda n: "-" * n + "x",
    "fields": lambda n: "a\n@b\n:c" * (n // 7),
    "defaults": lambda n: "x : int, default  '\n    " + "default '" * (n // 9),
}


@pytest.mark.parametrize("pump", PUMPS)
@pytest.mark.parametrize(
    "head",
    [
        "Args:\n    ",
        "Returns:\n    ",
        "Parameters\n----------\n",
        "Returns\n-------\n",
        ":param ",
    ],
)
def test_a_docstring_is_read_in_linear_time(head, pump) -> None:
    """No style and no repeated part of a stranger's docstring keeps the interpreter busy."""
    started = time.process_time()
    found = read_docstring(f"Add.\n\n{head}{PUMPS[pump](6_000)}\n")
    assert time.process_time() - started < 2
    assert found.summary.startswith("Add.")


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("x", "x"),
        ("x (int)", "x"),
        ("x(int, optional)", "x"),
        ("x()(int)", "x"),
        ("*args (int)", "args"),
    ],
)
def test_the_name_of_a_parameter_ends_at_its_type(head, name) -> None:
    """Whether or not a space stands before the bracket, the type is no part of the name."""
    found = read_docstring(f"Add.\n\nArgs:\n    {head}: First.\n    y: Second.\n")
    assert found.parameters == {name: "First.", "y": "Second."}
