"""Primitives on simple tables: lists of rows, each an object with a value by column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agentkit.composites.contracts import Expression
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeError, CompositeRunError, ModelRetry
from agentkit.testing.primitives.common import LIMITS, PURE, Row, RowPredicate, worked
from agentkit.tools.decorator import tool

_TABLE_FUEL, _LEAST_ROW_FUEL = 1_000_000, 200
"""What a predicate may use for all rows together, and what it has for each row in any case."""

_SHOWN = 200
"""Characters of a value in a message."""

_TAGS = ("tables",)
_SALES = [
    {"region": "EU", "amount": 120},
    {"region": "US", "amount": 80},
    {"region": "EU", "amount": 40},
]

_SORTED = (
    "[row[column] for row in result] == sorted([row[column] for row in rows], reverse=descending)"
)


@tool(
    effects=PURE,
    tags=_TAGS,
    post=(
        "len(result) < len(rows) or result == rows",
        "result == [] or result[0] in rows",
    ),
    complexity="O(n)",
    examples=(
        worked(
            [_SALES[0]],
            "Which European sales are above 100?",
            rows=_SALES,
            predicate='row["region"] == "EU" and row["amount"] > 100',
        ),
        worked(_SALES, rows=_SALES, predicate='row["amount"] > 0'),
        worked([], rows=[], predicate='row["amount"] > 100'),
    ),
)
def filter_rows(rows: list[Row], predicate: RowPredicate) -> list[Row]:
    """The rows of a table for which a condition holds.

    Args:
        rows: The table.
        predicate: Condition on one row in the composite language, such as
            row["amount"] > 10 and row["region"] == "EU".

    Returns:
        The rows for which it is true, in order.

    Raises:
        ModelRetry: The predicate is no such expression, or has no truth value for some row.
    """
    try:
        condition = Expression.parse(predicate, ("row",))
    except CompositeError as error:
        why = "; ".join(f"{problem.message}. {problem.advice}" for problem in error.problems)
        raise ModelRetry(f"the predicate {predicate!r} can not be used: {why}") from error
    fuel = max(_LEAST_ROW_FUEL, min(LIMITS.fuel, _TABLE_FUEL // (len(rows) or 1)))
    limits = replace(LIMITS, fuel=fuel)
    return [row for at, row in enumerate(rows) if _holds(condition, row, at, limits)]


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("all(column in row for row in rows)",),
    post=("result == [row[column] for row in rows]",),
    complexity="O(n)",
    examples=(
        worked([120, 80, 40], "List the amounts of the sales.", rows=_SALES, column="amount"),
        worked(["EU", "US", "EU"], rows=_SALES, column="region"),
        worked([], rows=[], column="amount"),
    ),
)
def select_column(rows: list[Row], column: str) -> list[Any]:
    """The values of one column of a table.

    Args:
        rows: The table.
        column: Name of a column that every row has.

    Returns:
        One value for each row, in order.

    Raises:
        ModelRetry: A row lacks the column.
    """
    _check_column(rows, column)
    return [row[column] for row in rows]


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("all(column in row for row in rows)",),
    post=(
        "len(result) == len(rows)",
        _SORTED,
        "result == [] or result[0] in rows",
    ),
    complexity="O(n log n)",
    examples=(
        worked(
            [_SALES[2], _SALES[1], _SALES[0]],
            "Sort the sales by amount.",
            rows=_SALES,
            column="amount",
        ),
        worked([_SALES[1], _SALES[0], _SALES[2]], rows=_SALES, column="region", descending=True),
        worked([], rows=[], column="amount"),
    ),
)
def sort_rows(rows: list[Row], column: str, descending: bool = False) -> list[Row]:  # noqa: FBT001, FBT002 - a tool's parameters are called by name
    """A table in the order of one column; rows with the same value keep their order.

    Args:
        rows: The table.
        column: Name of a column that every row has, with numbers only or texts only.
        descending: Whether the largest comes first.

    Returns:
        The same rows in order.

    Raises:
        ModelRetry: A row lacks the column, or its values have no common order.
    """
    _check_column(rows, column)
    try:
        return sorted(rows, key=lambda row: row[column], reverse=descending)
    except TypeError as error:
        raise ModelRetry(
            f"the values of column {column!r} have no common order ({error}); filter the rows first"
        ) from error


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("all(column in row for row in rows)",),
    post=(
        "sum(len(group) for group in result.values()) == len(rows)",
        "all(len(group) > 0 for group in result.values())",
        "all(str(group[0][column]) == name for name, group in result.items())",
        "all(str(group[-1][column]) == name for name, group in result.items())",
    ),
    complexity="O(n)",
    examples=(
        worked(
            {"EU": [_SALES[0], _SALES[2]], "US": [_SALES[1]]},
            "Group the sales by region.",
            rows=_SALES,
            column="region",
        ),
        worked({"80": [_SALES[1]]}, rows=[_SALES[1]], column="amount"),
        worked({}, rows=[], column="region"),
    ),
)
def group_rows(rows: list[Row], column: str) -> dict[str, list[Row]]:
    """The rows of a table by their value in one column.

    Args:
        rows: The table.
        column: Name of a column that every row has.

    Returns:
        For each value, as text, the rows that have it; in the order of their first row.

    Raises:
        ModelRetry: A row lacks the column.
    """
    _check_column(rows, column)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row[column]), []).append(row)
    return groups


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("all(column in row for row in left)", "all(column in row for row in right)"),
    post=(
        "len(result) <= len(left) * len(right)",
        "result == [] or result[0][column] in [row[column] for row in left]",
        "result == [] or result[-1][column] in [row[column] for row in right]",
        "result != [] or left == [] or left[0][column] not in [row[column] for row in right]",
        "result == [] or all(name in result[0] for name in left[0])",
    ),
    complexity="O(n + m + matches)",
    examples=(
        worked(
            [{"region": "US", "amount": 80, "manager": "Kim"}],
            "Who manages each sale?",
            left=_SALES,
            right=[{"region": "US", "manager": "Kim"}],
            column="region",
        ),
        worked(
            [{"id": 1, "a": 2, "b": 3}, {"id": 1, "a": 2, "b": 4}],
            left=[{"id": 1, "a": 2}],
            right=[{"id": 1, "b": 3}, {"id": 1, "b": 4, "a": 0}],
            column="id",
        ),
        worked([], left=_SALES, right=[], column="region"),
    ),
)
def join_rows(left: list[Row], right: list[Row], column: str) -> list[Row]:
    """Two tables side by side where they agree in one column (an inner join).

    Args:
        left: First table. Where both have a column of one name, its value is kept.
        right: Second table.
        column: Name of the column that has to agree; every row of both tables has it.

    Returns:
        One row for each pair of rows that agree, in the order of the first table.

    Raises:
        ModelRetry: A row lacks the column or has a list or object there, or more than 10,000
            pairs agree.
    """
    _check_column(left, column)
    _check_column(right, column)
    partners = _by_value(right, column)
    joined: list[Row] = []
    for row in left:
        joined.extend(other | row for other in partners.get(_key(row, column), ()))
        if len(joined) > LIMITS.collection_items:
            raise ModelRetry(
                f"more than {LIMITS.collection_items:,} pairs of rows agree in {column!r}; "
                "filter the tables first"
            )
    return joined


def _holds(condition: Expression, row: Row, at: int, limits: CompositeLimits) -> bool:
    try:
        held = condition.evaluate({"row": row}, limits=limits)
    except CompositeRunError as error:
        shown = repr(row)[:_SHOWN]
        raise ModelRetry(f"the predicate has no value for row {at}, {shown}: {error}") from error
    if not isinstance(held, bool):
        raise ModelRetry(
            f"the predicate gives {repr(held)[:_SHOWN]} for row {at}, not true or false; compare "
            "it with a value"
        )
    return held


def _by_value(rows: Iterable[Row], column: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(_key(row, column), []).append(row)
    return found


def _key(row: Row, column: str) -> Any:
    value = row[column]
    if isinstance(value, list | dict):
        raise ModelRetry(f"column {column!r} holds {value!r}; join on text, numbers or null")
    return value


def _check_column(rows: Iterable[Row], column: str) -> None:
    for at, row in enumerate(rows):
        if column not in row:
            raise ModelRetry(f"row {at} has no column {column!r}; it has {', '.join(row)}")


TABLES = (filter_rows, select_column, sort_rows, group_rows, join_rows)
