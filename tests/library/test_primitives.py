"""The primitives and the sample library are complete and true, and compose as in the paper."""

from __future__ import annotations

import pytest

from agentkit.composites.composite import composite_tool
from agentkit.composites.contracts import Conditions
from agentkit.composites.source import compose
from agentkit.library.dag import depth, flat_size
from agentkit.testing import primitive_library, sample_library

TOOLS = {tool.name: tool for tool in primitive_library()}
SAMPLE_TOOLS = {tool.name: tool for tool in sample_library()}
ALL = TOOLS | SAMPLE_TOOLS


def test_there_are_as_many_as_in_the_paper():
    """The library has 42 primitives (CoCoDA, appendix E)."""
    assert len(TOOLS) == 42


@pytest.mark.parametrize("name", ALL)
def test_all_four_levels_are_filled(name):
    """Every tool has a result type, words for each parameter, conditions and worked examples."""
    definition = ALL[name].definition
    effects, specification = definition.signature.effects, definition.specification
    assert definition.signature.result is not None
    assert set(definition.description.parameters) == set(definition.signature.properties)
    assert definition.description.summary
    assert definition.description.tags
    assert specification.complexity
    assert effects.to_json()
    assert any(example.query for example in definition.examples)
    assert specification.pre or specification.post or specification.text
    if name in TOOLS:
        assert effects.is_read_only
        assert effects.reads is effects.destructive is effects.open_world is False
        assert specification.post
        assert len(definition.examples) >= 3


@pytest.mark.parametrize("name", ALL)
def test_examples_are_what_the_tool_returns(name):
    """Calling a tool as in an example gives its result, which keeps the conditions; None does not."""
    tool = ALL[name]
    conditions = Conditions(tool.definition)
    for example in tool.definition.examples:
        result = tool(**example.arguments)
        assert result == example.result
        assert type(result) is type(example.result)
        if name in TOOLS:
            assert conditions.after(example.arguments, result) is None
            assert result is None or conditions.after(example.arguments, None) is not None


LIBRARY = primitive_library()
SALES = [
    {"region": "EU", "amount": 120},
    {"region": "US", "amount": 80},
    {"region": "EU", "amount": 40},
]

QUADRATIC_EXPR = """
def quadratic_expr(a: float, b: float, c: float, x: float) -> float:
    '''Evaluate a*x**2 + b*x + c at x (CoCoDA, appendix F.2).'''
    return add(add(mul(a, pow_int(x, 2)), mul(b, x)), c)
"""
SUM_WHERE = """
def sum_where(rows: list[dict[str, Any]], column: str, predicate: Expr["row -> bool"]) -> float:
    '''Sum a numeric column over rows satisfying a predicate (CoCoDA, appendix F.2).'''
    return sum_list(select_column(filter_rows(rows, predicate), column))
"""
COMPUTE_RATIO = """
def compute_ratio(part: float, whole: float) -> float:
    '''Part of a whole in percent.'''
    return mul(div(part, whole), 100)
"""
SOLVE_QUADRATIC = """
def solve_quadratic(a: float, b: float, c: float) -> list[float]:
    '''The real roots of a*x**2 + b*x + c (CoCoDA, appendix H.2).'''
    discriminant = sub(pow_int(b, 2), mul(4, mul(a, c)))
    if discriminant < 0:
        return []
    root = sqrt(discriminant)
    signs = [-1, 1] if root > 0 else [1]
    return [div(add(neg(b), mul(sign, root)), mul(2, a)) for sign in signs]
"""

WRITTEN = [
    (QUADRATIC_EXPR, {"a": 1, "b": -3, "c": 2, "x": 2}, 0, 5),
    (QUADRATIC_EXPR, {"a": 2, "b": 0, "c": -1, "x": 3}, 17, 5),
    (QUADRATIC_EXPR, {"a": 0, "b": 1, "c": 0, "x": 5}, 5, 5),
    (
        SUM_WHERE,
        {"rows": SALES, "column": "amount", "predicate": 'row["region"] == "EU"'},
        160,
        3,
    ),
    (COMPUTE_RATIO, {"part": 15, "whole": 60}, 25.0, 2),
    (SOLVE_QUADRATIC, {"a": 1, "b": -5, "c": 6}, [2.0, 3.0], 4),
    (SOLVE_QUADRATIC, {"a": 1, "b": 0, "c": 4}, [], 4),
]


def bound(source):
    """The composite of a text, with every contract checked at each call."""
    return composite_tool(compose(source, LIBRARY.tools), LIBRARY.tools, contracts="always")


@pytest.mark.parametrize(("source", "arguments", "result", "size"), WRITTEN)
def test_composites_of_the_paper_and_others(source, arguments, result, size):
    """The text composes, runs with all conditions checked, and stands for so many primitives."""
    tool = bound(source)
    assert tool(**arguments) == result
    grown = LIBRARY.with_tools([tool])
    assert depth(grown, tool.name) == 1
    assert flat_size(grown, tool.name) == size
    assert tool.definition.signature.effects.is_read_only
