"""Primitives that give a list, or a place in one."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import Field

from agentkit.errors import ModelRetry
from agentkit.testing.primitives.common import LIMITS, PURE, Values, worked
from agentkit.tools.decorator import tool

_TAGS = ("lists",)


@tool(
    effects=PURE,
    tags=_TAGS,
    post=("len(result) == len(values)", "result == sorted(values, reverse=descending)"),
    complexity="O(n log n)",
    examples=(
        worked([1, 3, 9], "Put 9, 1 and 3 in order.", values=[9, 1, 3]),
        worked(["c", "b", "a"], values=["b", "c", "a"], descending=True),
        worked([], values=[]),
    ),
)
def sort_list(values: Values, descending: bool = False) -> Values:  # noqa: FBT001, FBT002 - a tool's parameters are called by name
    """A list in order, smallest or first in the alphabet first.

    Args:
        values: Numbers, or texts; not both.
        descending: Whether the largest comes first.

    Returns:
        The same values in order.

    Raises:
        ModelRetry: The list mixes numbers and texts.
    """
    try:
        return cast("Values", sorted(cast("list[Any]", values), reverse=descending))
    except TypeError as error:
        raise ModelRetry(
            f"these values have no common order ({error}); give numbers only, or texts only"
        ) from error


@tool(
    effects=PURE,
    tags=_TAGS,
    post=("result == list({value: True for value in values})",),
    complexity="O(n)",
    examples=(
        worked(
            ["Oslo", "Paris"],
            "Which cities occur in Oslo, Paris, Oslo?",
            values=["Oslo", "Paris", "Oslo"],
        ),
        worked([3, 1, 2], values=[3, 1, 3, 2, 1]),
        worked([], values=[]),
    ),
)
def unique(values: Values) -> Values:
    """A list without repetitions, in the order in which the values first occur.

    Args:
        values: Numbers, or texts.

    Returns:
        Each value once.
    """
    return cast("Values", list(dict.fromkeys(values)))


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("count >= 0", "skip >= 0"),
    post=("len(result) <= count", "result == values[skip : skip + count]"),
    complexity="O(count)",
    examples=(
        worked(["gold", "silver"], values=["gold", "silver", "bronze"], count=2),
        worked(
            ["e", "f"],
            "Give me the second page of two.",
            values=["c", "d", "e", "f"],
            count=2,
            skip=2,
        ),
        worked([1], values=[1], count=5),
        worked([], values=[1, 2], count=0),
    ),
)
def take(
    values: list[Any],
    count: Annotated[int, Field(ge=0)],
    skip: Annotated[int, Field(ge=0)] = 0,
) -> list[Any]:
    """A stretch of a list: its first items, or those after some that are skipped.

    Args:
        values: Items of any kind.
        count: How many to take; fewer come back when the list ends before.
        skip: How many to pass over first.

    Returns:
        The items taken, in order.

    Raises:
        ModelRetry: count or skip is negative.
    """
    if count < 0 or skip < 0:
        raise ModelRetry(f"count is {count} and skip is {skip}; give 0 or more for both")
    return values[skip : skip + count]


@tool(
    effects=PURE,
    tags=_TAGS,
    post=(
        "(result is None) == (value not in values)",
        "result is None or values[result] == value",
        "result is None or value not in values[:result]",
    ),
    complexity="O(n)",
    examples=(
        worked(
            1,
            "Where does Lyon come in the tour Paris, Lyon, Nice?",
            values=["Paris", "Lyon", "Nice"],
            value="Lyon",
        ),
        worked(0, values=[7, 7], value=7),
        worked(None, values=[1, 2], value=3),
    ),
)
def index_of(values: list[Any], value: Any) -> int | None:
    """Place of a value in a list, from 0.

    Args:
        values: Items of any kind.
        value: What to look for.

    Returns:
        The first place at which it stands; null when it is not in the list.
    """
    return values.index(value) if value in values else None


@tool(
    effects=PURE,
    tags=_TAGS,
    post=("len(result) == len(first) + len(second)", "result == first + second"),
    complexity="O(n)",
    examples=(
        worked(["a", "b", "c"], "Append c to a and b.", first=["a", "b"], second=["c"]),
        worked([1, 1], first=[1], second=[1]),
        worked([], first=[], second=[]),
    ),
)
def concat(first: list[Any], second: list[Any]) -> list[Any]:
    """Two lists one after the other.

    Args:
        first: What comes first.
        second: What comes after it.

    Returns:
        All items in order.

    Raises:
        ModelRetry: Together they have more than 10,000 items.
    """
    if len(first) + len(second) > LIMITS.collection_items:
        raise ModelRetry(
            f"{len(first)} and {len(second)} items are more than {LIMITS.collection_items:,} "
            "together; shorten the lists"
        )
    return first + second


LISTS = (sort_list, unique, take, index_of, concat)
