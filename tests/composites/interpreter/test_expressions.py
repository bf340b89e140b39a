"""Conditions and formulas as text: read once, evaluated for every row."""

from __future__ import annotations

import pytest

from agentkit.composites.contracts import Expression
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError, UsageError


def test_a_predicate_is_evaluated_for_every_row() -> None:
    """It is a value of its own and keeps nothing between two rows."""
    predicate = Expression.parse('row["a"] > 1 and row["b"] == "EU"', names=["row"])
    rows = [{"a": a, "b": b} for a in (0, 2) for b in ("EU", "US")]
    assert [predicate.evaluate({"row": row}) for row in rows] == [False, False, True, False]


def test_it_knows_what_it_reads() -> None:
    """Only names that the expression uses have to be given."""
    expression = Expression.parse("a + sum(x for x in b)", names=["b", "c", "a"])
    assert (expression.reads, expression.names) == (("b", "a"), ("b", "c", "a"))
    assert expression.text == "a + sum(x for x in b)"
    assert expression.evaluate({"a": 1, "b": [2, 3], "other": None}) == 6
    with pytest.raises(UsageError, match="reads 'b', but was given 'a'"):
        expression.evaluate({"a": 1})


def test_each_evaluation_has_its_own_fuel() -> None:
    """The limits are those of one evaluation."""
    limits = CompositeLimits(fuel=100)
    expression = Expression.parse("[y for y in range(x)]", names=["x"])
    for _ in range(10):
        assert len(expression.evaluate({"x": 20}, limits=limits)) == 20
    with pytest.raises(CompositeRunError):
        expression.evaluate({"x": 100}, limits=limits)
