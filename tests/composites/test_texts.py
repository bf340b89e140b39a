"""Texts become programs: what they mean, what is refused with advice, and the types that flow through calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Literal

import pytest
from support.cost import check_cost

from agentkit.composites.language import arguments_of, calls, child_of
from agentkit.composites.parser import parse, parse_expression
from agentkit.composites.problems import READING_LIMITS
from agentkit.composites.source import compose
from agentkit.errors import CompositeError, SourceProblem
from agentkit.tools.decorator import tool
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def test_a_text_and_what_is_around_its_program(tools: Mapping[str, Tool]) -> None:
    """Name, docstring, syntax and places come with the program."""
    source = '@decorated(pre=["x > 0"])\ndef over(x: int, *, y=-2) -> int:\n    """Adds.\n\n    Twice.\n    """\n    return add(x, b=y)\n'
    parsed = parse(source, tools)
    assert parsed.program.text == "def composite(x, y=-2):\n    return add(a=x, b=y)\n"
    assert (parsed.name, parsed.docstring) == ("over", "Adds.\n\n    Twice.\n    ")
    assert ast.unparse(parsed.function.decorator_list[0]) == "decorated(pre=['x > 0'])"
    assert isinstance(parsed.function.returns, ast.Name)
    (call,) = calls(parsed.program)
    assert [
        parsed.place(call),
        *(parsed.place(value) for _, value in arguments_of(call)),
        parsed.place(parsed.program.body[0]),
    ] == [(7, 12), (7, 16), (7, 21), (7, 5)]


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("add(1, 2)", "add", "a b"),
        ("add(b=1, a=2)", "add", "b a"),
        ("await add(1, 2)", "add", "a b"),
        ("weather.now(1)", "weather.now", "city"),
        ("get_user(user_id=1, from_=2)", "get user", "user-id from"),
    ],
)
def test_children_are_found_by_what_the_text_calls_them(
    text: str, name: str, arguments: str, tools: Mapping[str, Tool]
) -> None:
    """The program has the name in the library, and every argument's name."""
    (call,) = calls(parse(f"async def f(): return {text}", tools).program)
    assert child_of(call) == name
    assert [key for key, _ in arguments_of(call)] == arguments.split()


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("f'{a}'", "f'{a}'"),
        ("f'x{a}{{}}' 'y'", "f'x{a}{{}}y'"),
        ("f'{1}{a}{None} {\"b\"}'", "f'1{a}None b'"),
        ("f'{1}' '{}'", "'1{}'"),
    ],
)
def test_f_strings_are_joined(text: str, joined: str) -> None:
    """Texts side by side are one, and literals in braces are text."""
    assert ast.unparse(parse_expression(text, "a")) == joined


# --- the same meaning, the same program -----------------------------------------------------------

PLAIN = """def f(x, y=1):
    a = add(a=x, b=y)
    if a > 1 and x:
        b = "it's"
    elif a < 0:
        b = [a, {"k": a}][0]
    else:
        b = f"{a} and {x['k']}"
    send(text=b)
    return (b, -a)
"""


@pytest.mark.parametrize(
    "changed",
    [
        PLAIN.replace("def f(", "async def g("),
        PLAIN.replace("    a = add", "    '''Words.'''\n\n    # why\n    a = add"),
        PLAIN.replace("add(a=x, b=y)", "add(\n        x,\n        (y),\n    )"),
        PLAIN.replace("a > 1 and x", "((a) > (1)) and (x)"),
        PLAIN.replace('"it\'s"', "'it\\'s'").replace('{"k": a}', "{'''k''': a,}"),
        PLAIN.replace("f\"{a} and {x['k']}\"", "f'{a}' ' and ' f'{x[\"k\"]}'"),
        PLAIN.replace("    return (b, -a)", "    pass\n    return b, (-a)"),
        PLAIN.replace("x, y=1", "x: int, y: 'str | None' = 1, *,").replace(", *,)", ")"),
        PLAIN.replace(
            "    elif a < 0:\n        b = [a, {\"k\": a}][0]\n    else:\n        b = f\"{a} and {x['k']}\"",
            '    else:\n        if a < 0:\n            b = [a, {"k": a}][0]\n        else:\n'
            "            b = f\"{a} and {x['k']}\"",
        ),
    ],
)  # fmt: skip
def test_the_program_is_the_meaning(changed: str, tools: Mapping[str, Tool]) -> None:
    """Layout, comments, words, quotes, parentheses, await and elif leave no trace."""
    assert changed != PLAIN
    one, two = parse(PLAIN, tools).program, parse(changed, tools).program
    assert repr(two) == repr(one)


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
        (2, "parameter"),
        (3, "unknown_construct"),
        (6, "unknown_construct"),
        (10, "format_specification"),
    ]


Found = list[tuple[int, str]]


def found(problems: tuple[SourceProblem, ...]) -> Found:
    """Lines and codes."""
    return [(problem.line, problem.code) for problem in problems]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # definite assignment
        ("if x:\n  y = 1\nreturn y", [(4, "possibly_unbound")]),
        ("if x:\n  y = 1\nelse:\n  y = 2\nreturn y", []),
        ("if x:\n  y = 1\nelse:\n  return 2\nreturn y", []),
        ("for y in x:\n  pass\nreturn y", [(4, "possibly_unbound")]),
        ("for y in x:\n  z = y\nreturn z", [(4, "possibly_unbound")]),
        ("z = 0\nfor y in x:\n  z = y\nreturn z", []),
        ("for y in x:\n  if y:\n    z = 1\n  else:\n    continue\n  z += 1\nreturn x", []),
        ("for y in x:\n  if y:\n    z = 1\n  z += 1\nreturn x", [(5, "possibly_unbound")]),
        ("y += 1\ny = x\nreturn y", [(2, "possibly_unbound")]),
        ("y += 1\nreturn x", [(2, "possibly_unbound")]),
        ("return y", [(2, "unknown_name")]),
        ("y = [k for k in x]\nreturn k", [(3, "unknown_name")]),
        # returns and what cannot be reached
        ("y = x", [(2, "missing_return")]),
        ("if x:\n  return 1\nelse:\n  return 2", []),
        ("for y in x:\n  return y", [(2, "missing_return")]),
        ("return 1\ny = 2\nz = 3", [(3, "unreachable_code")]),
        ("if x:\n  return 1\nelse:\n  return 2\nreturn 3", [(6, "unreachable_code")]),
        ("for y in x:\n  if y:\n    break\n  else:\n    continue\n  z = 1\nreturn 1", [(7, "unreachable_code")]),
        # constant conditions
        ("return x or 1", []),
        # names
        ("send = send(x)\nreturn send", [(2, "name_shadowing")]),
        ("for _ in x:\n  pass\nreturn 1", [(2, "underscore_name")]),
        ("f = 1\nreturn f", [(2, "name_shadowing")]),
        # dead calls of tools that change nothing
        ("measure(x)\nreturn 1", [(2, "dead_call")]),
        ("y = measure(x)\nreturn 1", [(2, "dead_call")]),
        ("y = measure(x)\nif x:\n  y = 2\nreturn y", []),
        ("y = measure(x)\nif x:\n  return y\nreturn 1", []),
        ("y = 0\nfor i in x:\n  y += measure(i)\nreturn y", []),
        ("y = 0\nfor i in x:\n  y += measure(i)\nreturn 1", [(4, "dead_call")]),
        ("y = measure(x)\nsend(text=y)\nreturn 1", []),
        ("y = send(text=measure(x))\nreturn 1", []),
        ("add(x, 1)\nreturn 1", []),
        ("measure(send(text=x))\nreturn 1", [(2, "dead_call")]),
        ("k = 0\nfor i, v in enumerate(c + k for c in x):\n  k = measure(v)\nreturn 1", []),
        # iterators where they are consumed
        ("return [list(range(3)), sum(x.values()), max(enumerate(x)), dict_of(x)]", [(2, "unknown_tool")]),
        ("return [len(range(3)), len(x.keys()), ','.join(k for k in x), any(k for k in x)]", []),
        ("y = x.items()\nreturn 1", [(2, "iterator_escapes")]),
        ("for k in (j for j in x):\n  pass\nreturn 1", []),
        ("return max(range(3), range(4))", [(2, "iterator_escapes"), (2, "iterator_escapes")]),
    ],
)  # fmt: skip
def test_rules_of_a_body(body: str, expected: Found, problems_of: Problems) -> None:
    """Each rule finds what breaks it, on its line, and nothing else."""
    indented = body.replace("\n", "\n  ")
    assert found(problems_of(f"def f(x):\n  {indented}\n")) == expected


@tool
def number(x: float) -> float:
    """A number."""
    return x


@tool
def whole(n: int) -> int:
    """An integer."""
    return n


@tool
def name(text: str) -> str:
    """A text."""
    return text


@tool
def total(xs: list[float]) -> float:
    """A sum."""
    return sum(xs)


@tool
def order(by: Literal["region", "amount"], limit: int = 10) -> list[dict[str, Any]]:
    """Ordered rows."""
    return []


@tool
def maybe(key: str) -> float | None:
    """A number, if there is one."""
    return None


@tool
def anything(value: Any = None) -> Any:
    """Anything."""
    return value


CLOSED = Tool(
    definition=ToolDefinition.from_schema(
        "closed",
        "A record.",
        {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}}},
        result={
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "additionalProperties": False,
        },
    ),
    function=lambda n=1: {"a": str(n)},
)
TOOLS: Mapping[str, Tool] = {
    entry.name: entry
    for entry in (
        number, whole, name, total, order, maybe, anything, CLOSED,
    )
}  # fmt: skip


def problems_of(head: str, body: str) -> list[tuple[str, str]]:
    """Code, and the text that a problem points at, of a function with that head and body."""
    source = f"def f({head}:\n" + "".join(f"    {line}\n" for line in body.splitlines())
    try:
        compose(source, TOOLS)
    except CompositeError as error:
        lines = source.splitlines()
        return [(p.code, lines[p.line - 1][p.column - 1 :]) for p in error.problems]
    return []


@pytest.mark.parametrize(
    ("head", "body", "code", "points_at"),
    [
        ("s: str)", "return number(s)", "argument_type", "s)"),
        ("s)", "return number(name(s))", "argument_type", "name(s))"),
        ("s)", "x = name(s)\nreturn number(x)", "argument_type", "x)"),
        ("s)", "return order('price')", "argument_type", "'price')"),
        ("s)", "return CLOSED_(n=0)", "argument_type", "0)"),
        ("s)", "return whole(2.5)", "argument_type", "2.5)"),
        ("s: str) -> float", "return name(s)", "result_type", "name(s)"),
        ("s: str) -> Literal['a', 'b']", "return 'c'", "result_type", "'c'"),
        ("s: int) -> dict", "if number(s):\n    return {}\nreturn []", "result_type", "[]"),
    ],
)  # fmt: skip
def test_a_certain_misfit_is_told_where_it_stands(
    head: str, body: str, code: str, points_at: str
) -> None:
    """The problem names the code and points at the argument, the key or the returned value."""
    found = problems_of(head, body.replace("CLOSED_", "closed"))
    assert [item[0] for item in found] == [code]
    assert found[0][1].startswith(points_at)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("s)", "return number(s)"),
        ("s: float)", "return whole(s / 2)"),
        ("s: bool)", "return number(s)"),
        ("s: int)", "s = name('a')\nreturn name(s)"),
        ("s)", "return number(True)"),
        ("s)", "return whole(2.0)"),
        ("s: list[str])", "return total([name(t) for t in s if t == 'a'])"),
        ("s: bool)", "x = []\nif s:\n    x = [name('a')]\nreturn total(x)"),
        ("s)", "return number(maybe('a'))"),
        ("s)", "x = maybe('a')\nif x is None:\n    return name('none')\nreturn number(x)"),
        ("s)", "x = maybe('a')\nreturn number(x) if x is not None else name('none')"),
        ("s: str | None)", "if not s:\n    return name('')\nreturn name(s)"),
        ("s) -> int", "return 4 / 2"),
    ],
)
def test_what_may_go_well_is_not_a_problem(head: str, body: str) -> None:
    """Unknown, partly fitting and unreachable values raise no alarm."""
    assert problems_of(head, body) == []


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("n = whole(1)\nreturn n", {"type": "integer"}),
        ("n = whole(1)\nn = 'a'\nreturn n", None),
        ("return maybe('a')", {"anyOf": [{"type": "number"}, {"type": "null"}]}),
        ("return anything()", None),
        ("return 1 if anything() else None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("return [name(s) for s in 'ab']", {"type": "array"}),
        ("return {name(s): 1 for s in 'ab'}", {"type": "object"}),
        (
            "if whole(1):\n    return 1\nreturn None",
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        ),
    ],
)
def test_an_undeclared_result_is_inferred(body: str, result: Any) -> None:
    """What the children declare tells what the composite returns."""
    text = "def f():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert compose(text, TOOLS).signature.result == result


@pytest.mark.parametrize("line", ["x = x.a", "x = x.é", "x.append(1)"])
def test_very_many_problems_are_told_in_little_time(line: str) -> None:
    """Each problem quotes its place, and no text is taken apart again for it."""
    text = "def f(x):\n" + f"    {line}\n" * 2_000 + "    return x\n"
    found: list[SourceProblem] = []

    def work() -> None:
        with pytest.raises(CompositeError) as caught:
            parse(text, {}, limits=READING_LIMITS)
        found[:] = caught.value.problems

    check_cost(work, len(text))
    assert len(found) == 2_000
    assert all(line.removeprefix("x = ").split("(")[0] in one.message for one in found)


def test_a_problem_quotes_one_line() -> None:
    """Of what goes on below its line, or is long, the beginning is told."""
    cases = {
        "(lambda:\n        1)": "`lambda: ...` is not in the language",
        "[é, lambda: é]": "`lambda: é` is not in the language",
        f"lambda: {'a' * 200}": "a ...` is not in the language",
    }
    for source, words in cases.items():
        with pytest.raises(CompositeError) as caught:
            parse(f"def f(é):\n    return {source}\n", {})
        assert caught.value.problems[0].message.endswith(words)
