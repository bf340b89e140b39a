"""What is outside the language is refused, with its place and with what to write instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentkit.errors import SourceProblem

Problems = Callable[[str], tuple[SourceProblem, ...]]

BODIES = [
    # statements
    ("while x:\n  x = x - 1", "unknown_construct", (2, 3), "range(n)"),
    ("try:\n  y = 1\nexcept ValueError as e:\n  y = 2", "unknown_construct", (2, 3), "Test for"),
    ("with x as y:\n  z = y", "unknown_construct", (2, 3), "Call a tool"),
    ("async for y in x:\n  z = y", "unknown_construct", (2, 3), "plain `for`"),
    ("import math", "unknown_construct", (2, 3), "tools are called"),
    ("def g(y):\n  return y", "unknown_construct", (2, 3), "where it is used"),
    ("global y", "unknown_construct", (2, 3), "local variables"),
    ("assert x", "unknown_construct", (2, 3), "precondition"),
    ("raise ValueError(x)", "unknown_construct", (2, 3), "Return a value"),
    ("match x:\n  case [1, *rest]:\n    y = 1", "unknown_construct", (2, 3), "if and elif"),
    ("for y in x:\n  pass\nelse:\n  z = 1", "unknown_construct", (5, 5), "before the loop"),
    # assignments
    ("y = z = 1", "unknown_construct", (2, 3), "one assignment a line"),
    ("y: int", "unknown_construct", (2, 3), "Give it a value"),
    ("x['k'] = 1", "unknown_construct", (2, 3), "in one go"),
    ("x[0] += 1", "unknown_construct", (2, 3), "in one go"),
    ("y, *z = x", "unknown_construct", (2, 6), "slice"),
    ("y, (z, w) = x", "unknown_construct", (2, 6), "two steps"),
    ("x |= 1", "unknown_construct", (2, 3), "`or`"),
    # statements that are expressions
    ("x + 1", "unknown_construct", (2, 3), "Assign it"),
    ("y = x\n'a note'", "unknown_construct", (3, 3), "comment"),
    ("len(x)", "unknown_construct", (2, 3), "Assign it"),
    ("x.append(1)", "unknown_method", (2, 3), "xs + [x]"),
    ("print(x)", "unknown_tool", (2, 3), "return"),
    ("...", "literal", (2, 3), "pass"),
    ("yield x", "unknown_construct", (2, 3), "list"),
    ("await x", "unknown_construct", (2, 3), "Drop the `await`"),
    ("if x:\n  break", "syntax", (3, 5), "Delete it"),
]

VALUES = [
    ("lambda: x", "unknown_construct", 10, "comprehension"),
    ("(y := x)", "unknown_construct", 11, "line of its own"),
    ("{x, 1}", "unknown_construct", 10, "list"),
    ("x.name", "unknown_construct", 10, "`x['name']`"),
    ("[*x]", "unknown_construct", 11, "`+`"),
    ("{**x}", "unknown_construct", 13, "one by one"),
    ("max(*x)", "unknown_construct", 14, "one by one"),
    ("x is 1", "unknown_construct", 10, "`==`"),
    ("x | 1", "unknown_construct", 10, "`or`"),
    ("await len(x)", "unknown_construct", 10, "Drop"),
    ("x[0](1)", "unknown_construct", 10, "by its name"),
    ("[y async for y in x]", "unknown_construct", 10, "plain `for`"),
    ("[y for z in x for y in z]", "nested_comprehension", 10, "for statement"),
    ("[[y for y in z] for z in x]", "nested_comprehension", 11, "variable first"),
    ("[z for z in [y for y in x]]", "nested_comprehension", 22, "variable first"),
    ("f'{x:.2f}'", "format_specification", None, "round"),
    ("b'x'", "literal", 10, "text"),
    ("1j", "literal", 10, "real"),
    ("1e999", "literal", 10, "1.7e308"),
    ("'\\ud800'", "literal", 10, "whole character"),
    ("1" * 2_000, "literal", 10, "smaller"),
    ("math.sqrt(x)", "unknown_tool", 10, "** 0.5"),
    ("x()", "unknown_tool", 10, "by its name"),
    ("addd(x, x)", "unknown_tool", 10, "`add`"),
    ("f(x)", "recursive_call", 10, "for loop"),
    ("x.uper()", "unknown_method", 10, "`upper`"),
    ("x.replace('a')", "wrong_arity", 10, "2 arguments"),
    ("sorted(x, key=len)", "wrong_arity", 20, "tuples"),
    ("list(zip(x))", "wrong_arity", 15, "2 or more"),
    ("add(x)", "missing_argument", 10, "takes a, b"),
    ("add(x, b=x, c=x)", "unknown_argument", 22, "takes a, b"),
    ("add(x, x, a=1)", "repeated_argument", 20, "once"),
    ("y", "unknown_name", 10, "'y'"),
    ("len", "unknown_name", 10, "Call it"),
    ("range(3)", "iterator_escapes", 10, "list(...)"),
    ("[enumerate(x)]", "iterator_escapes", 11, "list(...)"),
    ("(y for y in x)", "iterator_escapes", 10, "square brackets"),
    ("1 if True else x", "constant_condition", 15, "decide"),
    ("[y for y in x if 1 > 2]", "constant_condition", 27, "decide"),
    ("[x for x in [1]]", "name_shadowing", 10, "x_item"),
    ("[_y for _y in x]", "underscore_name", 10, "plain name"),
]


@pytest.mark.parametrize(("body", "code", "place", "advice"), BODIES)
def test_a_statement_outside_the_language(
    body: str, code: str, place: tuple[int, int], advice: str, problems_of: Problems
) -> None:
    """It is the one problem found, where it stands, with an advice that names the way out."""
    indented = body.replace("\n", "\n  ")
    (problem,) = problems_of(f"async def f(x):\n  {indented}\n  return x\n")
    assert (problem.code, problem.line, problem.column) == (code, *place)
    assert advice in problem.advice


@pytest.mark.parametrize(("value", "code", "column", "advice"), VALUES)
def test_an_expression_outside_the_language(
    value: str, code: str, column: int | None, advice: str, problems_of: Problems
) -> None:
    """It is the one problem found, where it stands, with an advice that names the way out."""
    (problem,) = problems_of(f"def f(x):\n  return {value}\n")
    assert (problem.code, problem.line) == (code, 2)
    assert column is None or problem.column == column  # Python 3.11 misplaces parts of f-strings
    assert advice in problem.advice


@pytest.mark.parametrize(
    ("header", "code", "column"),
    [
        ("def f(*xs)", "parameter", 8),
        ("def f(**xs)", "parameter", 9),
        ("def f(x, /)", "parameter", 7),
        ("def f(x=[])", "parameter", 9),
        ("def f(x=-y)", "parameter", 9),
        ("def f(_x)", "parameter", 7),
        ("def f(x, x)", "parameter", 10),
        ("def f(send)", "name_shadowing", 7),
        ("def f(weather)", "name_shadowing", 7),
    ],
)
def test_parameters_outside_the_language(
    header: str, code: str, column: int, problems_of: Problems
) -> None:
    """Each is refused where it stands."""
    source = f"{header}:\n  send(text=1)\n  a = weather.now(1)\n  return [a, get_user(1)]"
    if header == "def f(weather)":  # then weather.now is a method of the parameter
        source = source.replace("weather.now(1)", "weather_now(1)")
    problems = problems_of(source)
    assert [(p.code, p.line, p.column) for p in problems] == [(code, 1, column)]


def test_all_problems_are_reported_at_once(problems_of: Problems) -> None:
    """Reading goes on behind what was refused; the rules for names come when all can be read."""
    problems = problems_of(
        "import os\n"
        "def f(x, *rest):\n"
        "    while unknown(x):\n"
        "        y = x.attribute\n"
        "        break\n"
        "    try:\n"
        "        z = lambda: 1\n"
        "    except ValueError as wrong:\n"
        "        z = wrong.args\n"
        "    return [y, z, absent, add(1), f'{x:>3}']\n"
    )
    assert [(problem.line, problem.code) for problem in problems] == [
        (1, "unknown_construct"),
        (2, "parameter"),
        (3, "unknown_construct"),
        (6, "unknown_construct"),
        (10, "format_specification"),
    ]
