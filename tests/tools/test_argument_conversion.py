"""Validated JSON arguments become the Python values that the annotations promise."""

from __future__ import annotations

import dataclasses
import enum
from datetime import UTC, date, datetime
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import AfterValidator, BaseModel, Field, model_validator

from agentkit.errors import ModelRetry
from agentkit.tools import Tool, ToolDefinition
from agentkit.tools.decorator import tool


class Colour(enum.Enum):
    """Colours."""

    RED = "red"


class Period(BaseModel):
    """A stretch of days."""

    start: date
    end: date

    @model_validator(mode="after")
    def _in_order(self) -> Period:
        if self.end < self.start:
            message = "end lies before start"
            raise ValueError(message)
        return self


@dataclasses.dataclass
class Point:
    """A point."""

    x: float


class Filter(TypedDict):
    """A filter."""

    since: date


def even(number: int) -> int:
    """Only even numbers pass."""
    if number % 2:
        message = "must be even"
        raise ValueError(message)
    return number


@tool
def everything(
    period: Period,
    when: datetime,
    colour: Colour,
    pair: tuple[int, str],
    ids: set[int],
    point: Point,
    where: Filter,
    plain: list[int],
    count: int = 1,
    limit: Annotated[int, Field(ge=1)] = 10,
) -> None:
    """Take all kinds of values."""


def test_each_value_has_its_annotated_type() -> None:
    """Dates, enums, models, tuples, sets, dataclasses and typed dicts arrive as such."""
    converted = everything.convert(
        {
            "period": {"start": "2026-01-01", "end": "2026-01-31"},
            "when": "2026-05-31T12:00:00Z",
            "colour": "red",
            "pair": [1, "a"],
            "ids": [3, 4],
            "point": {"x": 1},
            "where": {"since": "2026-01-01"},
            "plain": [1],
        }
    )
    assert converted == {
        "period": Period(start=date(2026, 1, 1), end=date(2026, 1, 31)),
        "when": datetime(2026, 5, 31, 12, tzinfo=UTC),
        "colour": Colour.RED,
        "pair": (1, "a"),
        "ids": {3, 4},
        "point": Point(x=1.0),
        "where": {"since": date(2026, 1, 1)},
        "plain": [1],
    }


def test_defaults_are_left_to_the_function() -> None:
    """An argument that was not given is not filled in."""

    @tool
    def day(when: date = date(2026, 1, 1)) -> str:
        """Name the day."""
        return when.isoformat()

    assert day.convert({}) == {}


def test_plain_arguments_are_passed_as_they_are() -> None:
    """When every annotation is JSON-native, conversion is the identity."""

    @tool
    def plain(a: int, b: list[dict[str, float | None]], c: Annotated[int, Field(ge=1)] = 1) -> Any:
        """Plain."""

    arguments = {"a": 1, "b": [], "c": 3}
    assert plain.convert(arguments) is arguments
    assert plain.convert is Tool(definition=ToolDefinition(name="x")).convert


def test_constraints_alone_do_not_convert() -> None:
    """A constrained number stays the object that was given, beside one that is converted."""
    big = 10**6
    converted = everything.convert(
        {"limit": big, "colour": "red", "count": big}
        | {
            "period": {"start": "2026-01-01", "end": "2026-01-02"},
            "when": "2026-01-01T00:00:00",
            "pair": [1, ""],
            "ids": [],
            "point": {"x": 0},
            "where": {"since": "2026-01-01"},
        }
    )
    assert converted["limit"] is big
    assert converted["count"] is big


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (
            {"period": {"start": "2026-02-01", "end": "2026-01-01"}, "n": 2},
            ["`period`", "end lies before start"],
        ),
        ({"period": {"start": "2026-01-01", "end": "2026-01-01"}, "n": 3}, ["`n`", "must be even"]),
    ],
)
def test_rules_beyond_the_schema_ask_the_model_again(arguments, fragments) -> None:
    """A rule that only Python can check comes back as ``ModelRetry`` with the rule in words."""

    @tool
    def book(period: Period, n: Annotated[int, AfterValidator(even)]) -> None:
        """Book."""

    with pytest.raises(ModelRetry) as caught:
        book.convert(arguments)
    assert all(fragment in caught.value.message for fragment in fragments)
