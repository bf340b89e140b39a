"""A program as text, and back."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from agentkit.composites import language as ir
from agentkit.composites.parser import parse
from agentkit.composites.rendering import render
from agentkit.tools.tool import Tool


def test_the_text_is_what_a_person_would_write(tools: Mapping[str, Tool]) -> None:
    """Parentheses, quotes and blank space are canonical; elif is one line."""
    source = """
def f( x,y = -1 ):
  'Says something.'
  total=( add(x ,b = ( y ) ) ) # a comment
  if((x > 1)and not(y is None)): pass
  else:
    if x: total += 1
    else:
        for i , j in enumerate( [1,2,] , start = 1 ): total -= (i*(j))
  return {'a':(total,), "it's":f'{x}{{' 'y', 'n': -x**-2, 'm': (-x)**2, 't': (x if y else 1)}
"""
    assert render(parse(source, tools).program, "f") == (
        "def f(x, y=-1):\n"
        "    total = add(a=x, b=y)\n"
        "    if x > 1 and (not y is None):\n"
        "        pass\n"
        "    elif x:\n"
        "        total += 1\n"
        "    else:\n"
        "        for i, j in enumerate([1, 2], start=1):\n"
        "            total -= i * j\n"
        "    return {'a': (total,), \"it's\": f'{x}{{y', 'n': -x ** (-2), 'm': (-x) ** 2, "
        "'t': x if y else 1}\n"
    )


def test_a_function_can_be_shown_with_its_words_and_types(tools: Mapping[str, Tool]) -> None:
    """Annotations, result and docstring are written where Python wants them."""
    parsed = parse("def f(a, b=2): return add(a, b)", tools)
    text = render(
        parsed.program,
        "sum up",
        docstring='Adds.\n\nSays "a\\b".',
        annotations={"a": "int", "b": "int | None"},
        returns="int",
    )
    assert text == (
        "def sum_up(a: int, b: int | None = 2) -> int:\n"
        '    """Adds.\n'
        "\n"
        '    Says "a\\\\b"."""\n'
        "    return add(a=a, b=b)\n"
    )
    assert ast.get_docstring(ast.parse(text).body[0]) == 'Adds.\n\nSays "a\\b".'


def test_required_parameters_may_follow_optional_ones() -> None:
    """A bare star is written where Python needs one, and changes nothing."""
    program = parse("def f(*, a=1, b, c=2): return [a, b, c]", {}).program
    text = render(program, "f")
    assert text.splitlines()[0] == "def f(a=1, *, b, c=2):"
    assert parse(text, {}).program == program


def test_names_that_python_can_not_write_are_written_as_the_parser_reads_them(
    tools: Mapping[str, Tool],
) -> None:
    """Spaces become underscores, dots stay, keywords get an underscore behind."""
    source = "def f(x): return [get_user(user_id=x, from_=1), weather.now(x)]"
    program = parse(source, tools).program
    assert [call.child for call in ir.calls(program)] == ["get user", "weather.now"]
    text = render(program, "f")
    assert "get_user(user_id=x, from_=1), weather.now(city=x)" in text
    assert parse(text, tools).program == program
