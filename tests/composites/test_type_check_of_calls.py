"""Types across calls: certain misfits are told with their place, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from support.random_children import ChildrenInUse
from support.random_programs import random_program
from typing_extensions import TypedDict

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.composites.source import compose
from agentkit.composites.type_check import type_check
from agentkit.errors import CompositeError, CompositeRunError
from agentkit.tools.decorator import tool
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool


class Row(TypedDict):
    """One row of a table."""

    region: str
    amount: float


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
def rows(count: int = 3) -> list[Row]:
    """Rows."""
    return [{"region": "EU", "amount": float(at)} for at in range(count)]


@tool
def order(by: Literal["region", "amount"], limit: int = 10) -> list[Row]:
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


@tool
def place(at: Row) -> str:
    """Where a row is from."""
    return at["region"]


@tool
def pair(both: tuple[int, str]) -> tuple[int, str]:
    """A pair."""
    return both


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
        number, whole, name, total, rows, order, maybe, anything, place, pair, CLOSED,
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
        ("s)", "for k, r in enumerate(rows()):\n    place(k)\nreturn s", "argument_type", "k)"),
        ("s: str)", "return number(s[1:])", "argument_type", "s[1:])"),
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
    if not code:
        assert found == []
        return
    assert [item[0] for item in found] == [code]
    assert found[0][1].startswith(points_at)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("s)", "return number(s)"),
        ("s: float)", "return whole(s / 2)"),
        ("s: bool)", "return number(s)"),
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
        ("return whole(1) + 1", {"type": "integer"}),
        ("return maybe('a')", {"anyOf": [{"type": "number"}, {"type": "null"}]}),
        ("return anything()", None),
        ("return [name(s) for s in 'ab']", {"type": "array"}),
        (
            "return {name(s): 1 for s in 'ab'}",
            {"type": "object"},
        ),
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


def test_deep_loops_and_growing_values_are_settled() -> None:
    """Values that grow from turn to turn, in loops within loops, end the analysis all the same."""
    body = "    x = whole(1)\n"
    indent = "    "
    for depth in range(12):
        body += f"{indent}for a{depth} in range(2):\n"
        indent += "    "
    body += f"{indent}x = [x]\n"
    source = f"def f():\n{body}    return x\n"
    assert fits([[1]], compose(source, TOOLS).signature.result) is not False


@pytest.mark.parametrize("first", [0, 60])
def test_inferred_results_hold_for_random_programs(first: int) -> None:
    """Whatever a run returns satisfies the schema that was inferred for it."""
    children = ChildrenInUse()
    checked = failed = 0
    for seed in range(first, first + 60):
        program = random_program(seed, cases=2, mistakes=0.0)
        parsed = parse(program.source, children.tools)
        _, inferred = type_check(parsed.program, {}, children.by_name)
        composite = Composite(parsed.program, children.by_name, name=parsed.name)
        for case in program.cases:
            try:
                value = json.loads(json.dumps(composite.run(case)))
            except (CompositeRunError, TypeError):  # it fails, or gives keys that JSON has not
                failed += 1
                continue
            if inferred is not None:
                checked += 1
                assert fits(value, inferred) is not False, program.source
    assert failed < 100
    assert checked > 10
