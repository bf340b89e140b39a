"""A program as text, and back."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck

from agentkit.composites import language as ir
from agentkit.composites.parser import parse, parse_expression
from agentkit.composites.problems import CompositeLimits
from agentkit.composites.rendering import render, render_expression
from agentkit.tools.tool import Tool

WIDE = CompositeLimits(nodes=5_000, nesting=60, source_bytes=100_000)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


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


def test_what_python_3_11_can_not_write_in_an_f_string_is_added_up() -> None:
    """A backslash inside the braces, which only data can hold, has a text that means the same."""
    inner = ir.Index(value=ir.Name(name="a"), index=ir.Constant(value="\\"))
    text = render_expression(ir.Format(parts=(ir.Constant(value="x"), inner)))
    assert text == "'x' + str(a['\\\\'])"
    assert parse_expression(text, "a")


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
        '    Says "a\\\\b".\n'
        '    """\n'
        "    return add(a=a, b=b)\n"
    )
    assert ast.get_docstring(ast.parse(text).body[0]) == 'Adds.\n\nSays "a\\b".'


@pytest.mark.parametrize("docstring", ["One.", 'Ends in "quotes"', '"""', "a\\", "two\nlines"])
def test_any_docstring_comes_back(docstring: str) -> None:
    """Quotes and backslashes in a docstring do not end it."""
    program = parse("def f(): return 1", {}).program
    text = render(program, "f", docstring=docstring)
    assert ast.get_docstring(ast.parse(text).body[0]) == docstring
    assert parse(text, {}).program == program


def test_required_parameters_may_follow_optional_ones() -> None:
    """A bare star is written where Python needs one, and changes nothing."""
    program = parse("def f(*, a=1, b, c=2): return [a, b, c]", {}).program
    text = render(program, "f")
    assert text.splitlines()[0] == "def f(a=1, *, b, c=2):"
    assert parse(text, {}).program == program


@pytest.mark.parametrize(
    "text",
    [
        "a or b and not c",
        "(a or b) and c",
        "(a if b else c) if (b if c else a) else c",
        "not a == b",
        "(not a) == b",
        "a - (b - c) - c",
        "a ** b ** c",
        "(a ** b) ** c",
        "-a ** -b",
        "(-a) ** b",
        "a * (b + c) / c % (a * b)",
        "(a, b)[0]",
        "[a, b][1:][::2]",
        "(5).upper()",
        '"x".join(k for k in a if k if (k if a else b))',
        "max((k for k in a), default=0)",
        "{k: (k, l) for k, l in a.items()}",
        "[(k if b else c) for k in (a if b else c)]",
        "(a < b) < c",
        "a < b <= c != a",
        "{(a, b): [], c: {}}",
        "a[b, c]",
        'f"{a}"',
        "f\"{a['x']} {{b}} '{b}'\"",
        "f\"{', '.join(f'{k}!' for k in a)}\"",
        'f"""{f"{a[\'x\']}"}"""',
        'f"{ {a: b} }"',
        'f"{a != b}{a if b else c}{a[1:2]}"',
        "f\"{a['#']}{a['{']}\\n\"",
    ],
)
def test_expressions_survive(text: str) -> None:
    """An expression written out reads as the same expression."""
    expression = parse_expression(text, "abc")
    assert parse_expression(render_expression(expression), "abc") == expression


@pytest.mark.parametrize(
    "value", ["'", '"', "'\"", "\\", "\n\t\0", "{x}", "ü日\u2028", "it's \\' \""]
)
def test_texts_survive_as_literals_and_in_f_strings(value: str) -> None:
    """Quotes, backslashes, braces and control characters come back as they were."""
    literal = ir.Constant(value=value)
    formatted = ir.Format(parts=(literal, ir.Name(name="a"), ir.Constant(value=value)))
    for expression in (literal, formatted, ir.Index(value=formatted, index=literal)):
        assert parse_expression(render_expression(expression), "a") == expression


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
