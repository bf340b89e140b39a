"""What the primitives share: their effects, the types of their parameters and two small helpers."""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from agentkit.composites.annotations import Expr
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import ModelRetry
from agentkit.tools.definition import Effects, Example

PURE = Effects.pure()
"""Touches nothing outside the call, so that running it again, or not at all, changes nothing."""

LIMITS = CompositeLimits()
"""A primitive builds nothing larger than a composite may."""

Values: TypeAlias = list[float] | list[str]
"""Numbers or texts, not both, so that they have an order."""

Row: TypeAlias = dict[str, Any]
"""One row of a table: value by column."""

IsoDate: TypeAlias = Annotated[str, Field(json_schema_extra={"format": "date"})]
"""A day as YYYY-MM-DD. ISO days sort as text does."""

RowPredicate: TypeAlias = Annotated[str, Expr("row -> bool")]
"""A condition on one row, as text."""


def worked(result: Any, query: str = "", **arguments: Any) -> Example:
    """A worked call, with the request that leads to it when there is a telling one."""
    return Example(arguments=arguments, result=result, query=query)


def finite(value: float) -> float:
    """The value, when JSON can hold it.

    Raises:
        ModelRetry: It is infinite, or an integer beyond the largest float (about 1.8e308).
    """
    try:
        representable = math.isfinite(value)
    except OverflowError:
        representable = False
    if not representable:
        raise ModelRetry("the result is beyond the largest number (1.8e308); use smaller arguments")
    return value


def not_empty(values: list[Any], what: str) -> None:
    """Refuse an empty list.

    Raises:
        ModelRetry: There is nothing in it.
    """
    if not values:
        raise ModelRetry(f"an empty list has no {what}; give at least one value")
