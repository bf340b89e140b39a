"""A pydantic model is the arguments of a tool."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict, Field

from agentkit.errors import DefinitionError
from agentkit.tools import Effects
from agentkit.tools.sources import definition_from_model


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


class Node(BaseModel):
    """A tree."""

    value: int
    children: list[Node] = []


class Loose(BaseModel):
    """Takes anything."""

    model_config = ConfigDict(extra="allow")

    to: str = Field(alias="zip-code")


class Empty(BaseModel):
    pass


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


def test_own_words_and_defaults() -> None:
    """Without options the class lends its name; a given description wins."""
    assert definition_from_model(Node).name == "Node"
    assert definition_from_model(Node, description="A forest.").text == "A forest."


def test_recursive_model_has_its_fields_at_the_root() -> None:
    """A model that refers to itself still shows its parameters."""
    definition = definition_from_model(Node)
    assert list(definition.signature.properties) == ["value", "children"]
    assert definition.signature.required == ("value",)


def test_model_decides_on_extra_fields() -> None:
    """A model that allows extra fields stays open; aliases are what the model is called with."""
    parameters = definition_from_model(Loose).signature.parameters
    assert parameters["additionalProperties"] is True
    assert list(parameters["properties"]) == ["zip-code"]


def test_empty_model() -> None:
    """A model without fields is a tool without parameters."""
    assert definition_from_model(Empty).signature.parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


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
