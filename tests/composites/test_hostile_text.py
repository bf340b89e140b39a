"""Texts made to hurt: deep, long, odd. They are refused as any other, quickly and in little room."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from contextlib import suppress

import pytest

from agentkit.composites import language as ir
from agentkit.composites.parser import parse
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeError
from agentkit.tools.tool import Tool

MEBIBYTE = 2**20
BOUNDLESS = CompositeLimits(source_bytes=MEBIBYTE, nodes=MEBIBYTE, nesting=MEBIBYTE)

DEEP = {
    "parentheses": "(" * 10_000 + "x" + ")" * 10_000,
    "brackets": "[" * 4_000 + "]" * 4_000,
    "signs": "-" * 8_000 + "x",
    "not": "not " * 2_000 + "x",
    "sums": "x + " * 2_000 + "x",
    "powers": "x ** " * 1_500 + "x",
    "attributes": "x" + ".y" * 4_000,
    "calls": "x" + "()" * 4_000,
    "indexes": "x" + "[0]" * 2_600,
    "conditionals": "x if x else " * 650 + "x",
    "lambdas": "lambda:" * 1_100 + "x",
    "dicts": "{x:" * 2_000 + "x" + "}" * 2_000,
    "f-strings": "f'{" * 1_000,
    "yields": "(yield " * 150 + ")" * 150,
}
LONG = {
    "a text": f"return '{'a' * 100_000}'",
    "a mebibyte": f"return '{'a' * MEBIBYTE}'",
    "an elif chain": "if x:\n  pass\n" + " elif x:\n  pass\n" * 400,
    "blocks in blocks": "pass\n"
    + "".join(f"{' ' * i}if x:\n" for i in range(1, 99))
    + " " * 99
    + "x",
    "statements": "pass\n" + " x = x\n" * 1_000 + " return x",
    "an f-string": f"return f'{'{x}' * 2_000}'",
    "unknown tools": "pass\n" + "".join(f" tool_{number}(x)\n" for number in range(400)),
    "digits": f"return {'9' * 8_000}",
    "hexadecimal digits": f"return 0x{'f' * 8_000}",
}


def refused(
    text: str, tools: Mapping[str, Tool], limits: CompositeLimits | None = None
) -> set[str]:
    """The codes of what is wrong, found within 64 MB."""
    tracemalloc.start()
    with pytest.raises(CompositeError) as caught:
        parse(text, tools, limits=limits)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * MEBIBYTE
    assert len(str(caught.value)) < 20_000
    return {problem.code for problem in caught.value.problems}


@pytest.mark.parametrize("kind", DEEP)
def test_deep_expressions(kind: str, tools: Mapping[str, Tool]) -> None:
    """No depth reaches the limits of the process, not even without limits of our own."""
    codes = {"too_large", "unknown_construct", "syntax"}
    assert refused(f"def f(x): return {DEEP[kind]}", tools) <= codes
    with suppress(CompositeError):  # some can be read, on some versions of Python
        parse(f"def f(x): return {DEEP[kind]}", tools, limits=BOUNDLESS)


@pytest.mark.parametrize("kind", LONG)
def test_long_texts(kind: str, tools: Mapping[str, Tool]) -> None:
    """What is too long in any way is refused."""
    codes = refused(f"def f(x):\n {LONG[kind]}", tools)
    assert codes <= {"too_large", "literal", "unknown_tool", "missing_return"}


def test_nodes_and_nesting_have_a_limit_each(tools: Mapping[str, Tool]) -> None:
    """A program at the limit is read, one beyond it is refused."""
    text = "def f(x):\n if x:\n  return [x, -x]\n return x"  # 11 nodes, the deepest of them 5 deep
    parse(text, tools, limits=CompositeLimits(nodes=11, nesting=5))
    assert refused(text, tools, CompositeLimits(nodes=10)) == {"too_large"}
    assert refused(text, tools, CompositeLimits(nesting=4)) == {"too_large"}


@pytest.mark.parametrize(
    "test",
    ["9 ** 9 ** 9 ** 9", "'a' * 10 ** 12 == ''", "'%1000000000d' % 1 == ''", "10 ** 250 ** 2 > 1"],
)
def test_huge_constants_are_not_worked_out(test: str, tools: Mapping[str, Tool]) -> None:
    """Looking for constant conditions does no work that the program itself would be refused for."""
    program = parse(f"def f():\n if {test}:\n  return 1\n return 2", tools).program
    assert isinstance(program.body[0], ir.If)
