"""What the paper composes can be composed from the primitives, and keeps their contracts."""

from __future__ import annotations

import pytest

from agentkit.composites.composite import composite_tool
from agentkit.composites.source import compose
from agentkit.errors import ContractViolation, ModelRetry
from agentkit.library.dag import depth, flat_size
from agentkit.testing import primitive_library

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
SOLVE_LINEAR = """
def solve_linear(a: float, b: float, c: float) -> float:
    '''The x for which a*x + b = c.'''
    return div(sub(c, b), a)
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
COMPOUND_INTEREST = """
def compound_interest(amount: float, percent: float, years: int) -> float:
    '''What an amount grows to.'''
    return round_to(mul(amount, pow_int(add(1, div(percent, 100)), years)), 2)
"""
STANDARD_DEVIATION = """
def standard_deviation(values: list[float]) -> float:
    '''How far numbers lie from their mean.'''
    return sqrt(variance(values))
"""
TOTAL_BY_GROUP = """
def total_by_group(rows: list[dict[str, Any]], by: str, column: str) -> dict[str, float]:
    '''Sum of a column for each group of rows.'''
    groups = group_rows(rows, by)
    return {name: sum_list(select_column(group, column)) for name, group in groups.items()}
"""
COUNT_WORDS = """
def count_words(text: str) -> int:
    '''Words of a text.'''
    return count_items([word for word in split_text(trim(text), " ") if word != ""])
"""
LAST_WORKING_DAY = """
def last_working_day(day: str, days: int) -> str:
    '''The day so many days later, or the Friday before it when it is on a weekend.'''
    due = add_days(day, days)
    name = weekday(due)
    if name == "Sunday":
        return add_days(due, -2)
    return add_days(due, -1) if name == "Saturday" else due
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
    (SOLVE_LINEAR, {"a": 4, "b": 2, "c": 12}, 2.5, 2),
    (SOLVE_QUADRATIC, {"a": 1, "b": -5, "c": 6}, [2.0, 3.0], 4),
    (SOLVE_QUADRATIC, {"a": 1, "b": 0, "c": 4}, [], 4),
    (COMPOUND_INTEREST, {"amount": 1000, "percent": 5, "years": 2}, 1102.5, 5),
    (STANDARD_DEVIATION, {"values": [2, 4, 4, 4, 5, 5, 7, 9]}, 2.0, 2),
    (TOTAL_BY_GROUP, {"rows": SALES, "by": "region", "column": "amount"}, {"EU": 160, "US": 80}, 3),
    (COUNT_WORDS, {"text": "  to be  or not "}, 4, 3),
    (LAST_WORKING_DAY, {"day": "2026-03-02", "days": 6}, "2026-03-06", 2),
    (LAST_WORKING_DAY, {"day": "2026-03-02", "days": 4}, "2026-03-06", 2),
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


def test_a_broken_precondition_names_the_primitive():
    """With contracts checked, the call stops before the primitive and says whose rule it is."""
    with pytest.raises(ContractViolation) as caught:
        bound(COMPUTE_RATIO)(part=1, whole=0)
    assert caught.value.condition == "b != 0"
    assert caught.value.path == ("compute_ratio", "div")


def test_a_refusal_of_a_primitive_surfaces_with_its_path():
    """Without contracts the primitive itself refuses, and its advice is kept."""
    tool = composite_tool(compose(COMPUTE_RATIO, LIBRARY.tools), LIBRARY.tools)
    with pytest.raises(ModelRetry, match="compute_ratio → div: 1 can not be divided by zero"):
        tool(part=1, whole=0)
