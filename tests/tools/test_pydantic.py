"""Models as arguments, and values as the annotations promise."""

from __future__ import annotations

import dataclasses
import enum
from datetime import UTC, date, datetime
from typing import Annotated

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from agentkit.errors import DefinitionError, ModelRetry
from agentkit.tools import Effects, definition_from_model
from agentkit.tools.decorator import tool

# --- models as arguments --------------------------------------------------------------------------


class Traveller(BaseModel):
    """Somebody who travels."""

    name: str


class BookTrip(BaseModel):
    """Book a trip.

    Attributes:
        city: Where to.
    """

    city: str
    start: date = Field(description="First day.")
    travellers: list[Traveller] = []
    nights: Annotated[int, Field(ge=1)] = 1


class Loose(BaseModel):
    """Takes anything."""

    model_config = ConfigDict(extra="allow")

    to: str = Field(alias="zip-code")


def test_model_becomes_a_definition() -> None:
    """Fields are parameters, the docstring and field descriptions are the words."""
    definition = definition_from_model(
        BookTrip, name="book_trip", effects=("writes",), tags=("travel",)
    )
    assert definition.name == "book_trip"
    assert definition.description.summary == "Book a trip."
    assert definition.description.parameters == {"city": "Where to.", "start": "First day."}
    assert definition.signature.effects == Effects(writes=True)
    assert definition.signature.parameters == {
        "$defs": {
            "Traveller": {
                "description": "Somebody who travels.",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "type": "object",
            }
        },
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "start": {"type": "string", "format": "date"},
            "travellers": {"type": "array", "items": {"$ref": "#/$defs/Traveller"}, "default": []},
            "nights": {"type": "integer", "minimum": 1, "default": 1},
        },
        "required": ["city", "start"],
        "additionalProperties": False,
    }
    assert (definition.origin.kind, definition.origin.reference.rsplit(".", 1)[1]) == (
        "pydantic",
        "BookTrip",
    )


def test_model_decides_on_extra_fields() -> None:
    """A model that allows extra fields stays open; aliases are what the model is called with."""
    parameters = definition_from_model(Loose).signature.parameters
    assert parameters["additionalProperties"] is True
    assert list(parameters["properties"]) == ["zip-code"]


@pytest.mark.parametrize("model", [dict, BookTrip(city="Rome", start=date(2026, 1, 1)), 3])
def test_what_is_no_model_is_refused(model) -> None:
    """Anything but a model class is refused."""
    with pytest.raises(DefinitionError, match="not a subclass of pydantic"):
        definition_from_model(model)


class Unwritable(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    connection: memoryview


def test_model_without_a_schema_is_refused() -> None:
    """A field that JSON can not hold makes the model unusable, and the message says so."""
    with pytest.raises(DefinitionError, match="no JSON Schema"):
        definition_from_model(Unwritable)


# --- conversion of arguments ----------------------------------------------------------------------


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
