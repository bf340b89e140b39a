"""What the parser reads, and that only the meaning of a text reaches its program."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentkit.composites import language as ir
from agentkit.composites.parser import parse, parse_expression
from agentkit.tools.tool import Tool


def test_a_text_and_what_is_around_its_program(tools: Mapping[str, Tool]) -> None:
    """Name, docstring, syntax and places come with the program."""
    source = '@decorated(pre=["x > 0"])\ndef over(x: int, *, y=-2) -> int:\n    """Adds.\n\n    Twice.\n    """\n    return add(x, b=y)\n'
    parsed = parse(source, tools)
    x, y = (
        ir.Argument(name="a", value=ir.Name(name="x")),
        ir.Argument(name="b", value=ir.Name(name="y")),
    )
    assert parsed.program == ir.Program(
        parameters=(ir.Parameter(name="x"), ir.Parameter(name="y", default=ir.Constant(value=-2))),
        body=(ir.Return(value=ir.Call(child="add", arguments=(x, y))),),
    )
    assert (parsed.name, parsed.docstring) == ("over", "Adds.\n\n    Twice.\n    ")
    assert ast.unparse(parsed.function.decorator_list[0]) == "decorated(pre=['x > 0'])"
    assert isinstance(parsed.function.returns, ast.Name)
    (call,) = ir.calls(parsed.program)
    places = parsed.positions
    assert places[id(call)] == (7, 12)
    assert places[id(call.arguments[0])] == (7, 16)
    assert places[id(call.arguments[1])] == (7, 19)
    assert places[id(call.arguments[1].value)] == (7, 21)
    assert places[id(parsed.program.parameters[1])] == (2, 21)
    assert places[id(parsed.program.body[0])] == (7, 5)
    assert set(places) >= {id(node) for node in ir.walk(parsed.program)} - {id(parsed.program)}
    assert len(list(places)) == len(places)


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
    (call,) = ir.calls(parse(f"async def f(): return {text}", tools).program)
    assert call.child == name
    assert [argument.name for argument in call.arguments] == arguments.split()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("f'{a}'", (ir.Name(name="a"),)),
        ("f'x{a}{{}}' 'y'", (ir.Constant(value="x"), ir.Name(name="a"), ir.Constant(value="{}y"))),
        ("f'{1}{a}{None} {\"b\"}'", (ir.Constant(value="1"), ir.Name(name="a"), ir.Constant(value="None b"))),
    ],
)  # fmt: skip
def test_f_strings_are_joined(text: str, parts: tuple[ir.Expression, ...]) -> None:
    """Texts side by side are one, and literals in braces are text."""
    assert parse_expression(text, "a") == ir.Format(parts=parts)


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


# --- reading in threads ----------------------------------------------------------------------------

CALLS = "".join(f"    x{i} = [{i}, {{'k': a + {i}}}, len([a, {i}])]\n" for i in range(10))
TEXT = f"def f(a):\n{CALLS}    return x0\n"


@pytest.fixture
def interruptions() -> Iterator[None]:
    """The garbage collector runs often, and lets other threads go on each time."""

    def pause(phase: str, info: dict[str, Any]) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(pause)


@pytest.mark.usefixtures("interruptions")
def test_threads_do_not_disturb_each_other() -> None:
    """Every text is read, although CPython counts the depth of all trees together."""
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda _: parse(TEXT, {}).name, range(200)))
    assert read == ["f"] * 200


# --- public names ----------------------------------------------------------------------------------


def test_the_door_loads_no_parser() -> None:
    """An agent without composites pays for none of it."""
    code = (
        "import sys, agentkit.composites as door; door.READING_LIMITS\n"
        "print(sorted({'ast', 'inspect', 'difflib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    plain = (
        "import sys, dataclasses; print(sorted({'ast', 'inspect', 'difflib'} & set(sys.modules)))"
    )
    base = subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True, check=True)
    assert run.stdout == base.stdout
