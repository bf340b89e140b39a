"""Annotations become JSON Schema 2020-12; the quick way gives what pydantic gives."""

from __future__ import annotations

import dataclasses
import enum
import json
import typing
from datetime import date, datetime
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from agentkit.tools.sources import definition_from_function
from agentkit.tools.sources.annotations import plain_schema
from agentkit.tools.sources.pydantic_schema import pydantic_schema


class Colour(enum.Enum):
    """Colours."""

    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    """Where somebody lives."""

    city: str = Field(description="The city.")
    zip_code: str | None = Field(default=None, title="Postal code")
    next: Address | None = None


@dataclasses.dataclass
class Point:
    """A point."""

    x: float
    y: float = 0.0


class Line(NamedTuple):
    """Two ends."""

    start: int
    end: int


class Filter(TypedDict):
    """What to look for."""

    make: str
    limit: NotRequired[int]


class NarrowFilter(Filter, total=False):
    """The same with a colour and nested filters."""

    colour: Colour
    others: list[Filter]


def schema_of(annotation: Any, **default: Any) -> dict[str, Any]:
    """The parameters schema of a function with one parameter."""

    def function(value): ...

    function.__annotations__ = {"value": annotation}
    if default:
        function.__defaults__ = (default["default"],)
    schema = dict(definition_from_function(function).parameters_schema)
    Draft202012Validator.check_schema(schema)
    return schema


def test_plain_function() -> None:
    """Scalars, defaults and words give the schema that one would write by hand."""

    def book(
        city: str,
        nights: int = 1,
        budget: float | None = None,
        kind: Literal["hotel", "flat"] = "hotel",
        tags: Annotated[list[str], "Wishes."] = [],  # noqa: B006 - a common default in the wild
        *,
        late: bool = False,
    ) -> dict[str, Any]:
        """Book a room.

        Args:
            city: Where.
            nights: How long.
            budget: Euros.
            kind: What.
            tags: Words in the annotation win over these.
            late: Whether to arrive at night.
        """
        return {}

    assert definition_from_function(book).parameters_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "nights": {"type": "integer", "default": 1, "description": "How long."},
            "budget": {
                "anyOf": [{"type": "number"}, {"type": "null"}],
                "default": None,
                "description": "Euros.",
            },
            "kind": {
                "enum": ["hotel", "flat"],
                "type": "string",
                "default": "hotel",
                "description": "What.",
            },
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "default": [],
                "description": "Wishes.",
            },
            "late": {
                "type": "boolean",
                "default": False,
                "description": "Whether to arrive at night.",
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_function_without_parameters() -> None:
    """No parameters give an object that allows none."""

    def now() -> str:
        """Tell the time."""
        return ""

    assert definition_from_function(now).signature.parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_unannotated_function() -> None:
    """Without annotations everything is allowed and nothing is claimed about the result."""

    def anything(x, y=2): ...

    signature = definition_from_function(anything).signature
    assert signature.properties == {"x": {}, "y": {"default": 2}}
    assert signature.result is None


def test_model_parameter_keeps_local_definitions() -> None:
    """A model becomes a local definition without made-up titles; chosen titles stay."""
    schema = schema_of(Address)
    assert schema["properties"] == {"value": {"$ref": "#/$defs/Address"}}
    assert schema["$defs"]["Address"] == {
        "type": "object",
        "description": "Where somebody lives.",
        "properties": {
            "city": {"type": "string", "description": "The city."},
            "zip_code": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "title": "Postal code",
            },
            "next": {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}], "default": None},
        },
        "required": ["city"],
    }


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Colour, {"enum": ["red", "blue"], "type": "string", "description": "Colours."}),
        (
            Point,
            {
                "type": "object",
                "description": "A point.",
                "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}},
                "required": ["x"],
            },
        ),
        (
            Filter,
            {
                "type": "object",
                "description": "What to look for.",
                "properties": {"make": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["make"],
            },
        ),
    ],
)
def test_named_types_become_local_definitions(annotation, expected) -> None:
    """Enums, dataclasses and typed dicts stand under ``$defs`` with their docstring."""
    schema = schema_of(annotation)
    found = dict(schema["$defs"][annotation.__name__])
    found.pop("additionalProperties", None)  # differs between versions of pydantic
    assert found == expected


def test_inherited_typed_dict() -> None:
    """A typed dict from ``typing`` keeps which keys are required, on every Python."""
    schema = schema_of(list[NarrowFilter])
    inherited = schema["$defs"]["NarrowFilter"]
    assert inherited["required"] == ["make"]
    assert list(inherited["properties"]) == ["make", "limit", "colour", "others"]
    assert inherited["properties"]["others"]["items"] == {"$ref": "#/$defs/Filter"}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (datetime, {"type": "string", "format": "date-time"}),
        (date | None, {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[float, str],
            {
                "type": "array",
                "prefixItems": [{"type": "number"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (
            Annotated[int, Field(ge=1, le=9, description="How many.")],
            {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many."},
        ),
        (
            Annotated[date, "The day."],
            {"type": "string", "format": "date", "description": "The day."},
        ),
        (
            dict[str, list[int]],
            {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "integer"}},
            },
        ),
    ],
)
def test_other_annotations(annotation, expected) -> None:
    """Dates, sets, tuples, constraints and containers have their schema inline."""
    assert schema_of(annotation)["properties"]["value"] == expected


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (Colour, Colour.BLUE, "blue"),
        (date, date(2026, 5, 31), "2026-05-31"),
        (Point, Point(1.0, 2.0), {"x": 1.0, "y": 2.0}),
        (set[int], {3}, [3]),
    ],
)
def test_python_defaults_are_shown_as_json(annotation, default, expected) -> None:
    """A default that is a Python value is shown the way a model would write it."""
    assert schema_of(annotation, default=default)["properties"]["value"]["default"] == expected


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (float, float("inf")),
        (object, object()),
        (date | object, object()),
        (float | date, float("nan")),
    ],
)
def test_default_that_json_lacks_is_left_out(annotation, default) -> None:
    """A default that JSON can not write makes the parameter optional and is not shown."""
    schema = schema_of(annotation, default=default)
    assert "default" not in schema["properties"]["value"]
    assert "required" not in schema


def test_parameter_names_are_free() -> None:
    """Names that pydantic keeps for itself are ordinary parameter names."""

    def odd(schema: date, model_config: date, _private: date, copy: date, json: int): ...

    signature = definition_from_function(odd).signature
    names = ["schema", "model_config", "_private", "copy", "json"]
    assert list(signature.properties) == list(signature.required) == names


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, {"type": "integer"}),
        (None, {"type": "null"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (datetime, {"type": "string", "format": "date-time"}),
        (Any, None),
    ],
)
def test_result_schema(annotation, expected) -> None:
    """The return annotation declares the result; ``Any`` declares nothing."""

    def function(): ...

    function.__annotations__ = {"return": annotation}
    assert definition_from_function(function).signature.result == expected


def test_result_words_come_from_the_docstring() -> None:
    """What the docstring says of the result stands on the result's schema."""

    def distance(a: str, b: str) -> float:
        """Distance between two cities.

        Returns:
            Kilometres as the crow flies.
        """
        return 0.0

    assert definition_from_function(distance).signature.result == {
        "type": "number",
        "description": "Kilometres as the crow flies.",
    }


def test_recursive_result_has_an_inline_root() -> None:
    """The result of a recursive model is described at the root, not by a bare reference."""

    def find() -> Address:
        """Find somebody."""
        return Address(city="Rome")

    result = definition_from_function(find).signature.result
    assert result is not None
    assert (result["type"], "$ref" in result) == ("object", False)


SCALARS = st.sampled_from([str, int, float, bool, None])
LITERALS = st.lists(
    st.sampled_from(["a", "b", 1, 2, None]), min_size=1, max_size=3, unique=True
).map(lambda members: Literal[tuple(members)])
PLAIN = st.recursive(
    SCALARS | LITERALS | st.sampled_from([Any, list, dict, typing.List, typing.Dict, object]),  # noqa: UP006
    lambda inner: (
        inner.map(lambda item: list[item])
        | inner.map(lambda item: dict[str, item])
        | inner.map(lambda item: Optional[item])  # noqa: UP045 - None has no operator |
        | st.tuples(inner, inner).map(lambda pair: typing.Union[pair])  # noqa: UP007
        | inner.map(lambda item: Annotated[item, "words"])
    ),
    max_leaves=6,
)


def any_order(schema: Any) -> Any:
    """A schema with the branches of each ``anyOf`` sorted.

    ``typing`` keeps one of two unions that differ in order alone, whichever was made first.
    """
    if isinstance(schema, list):
        return [any_order(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: any_order(item) for key, item in schema.items()}
    if "anyOf" in found:
        found["anyOf"].sort(key=json.dumps)
    return found


@given(PLAIN)
def test_quick_schema_equals_pydantics(annotation) -> None:
    """Whatever annotation is read without pydantic, pydantic would read the same way."""
    quick = plain_schema(annotation)
    if quick is not None:
        theirs = pydantic_schema(annotation, tool_name="t", place="it")
        assert any_order(quick) == any_order(theirs)


@pytest.mark.parametrize(
    "annotation",
    [
        str,
        int,
        float,
        bool,
        list[int],
        dict[str, Any],
        Literal["a", "b"],
        int | None,
        list[str] | None,
    ],
)
def test_usual_annotations_do_not_need_pydantic(annotation) -> None:
    """The annotations that most tools use are read without pydantic."""
    assert plain_schema(annotation) is not None


@pytest.mark.parametrize(
    "annotation", [set[int], dict[int, str], [int], Colour, date, tuple[int, str], bytes]
)
def test_annotations_that_need_conversion_are_left_to_pydantic(annotation) -> None:
    """An annotation whose values are not JSON data as they stand is never read the quick way."""
    assert plain_schema(annotation) is None


def test_definition_survives_json() -> None:
    """A definition made from a function is equal after a trip through JSON text."""

    def visit(home: Address, when: date, how: Literal["car", "train"] = "train") -> list[Point]:
        """Visit somebody.

        Args:
            home: Their home.
            when: The day.
            how: The vehicle.
        """
        return []

    definition = definition_from_function(visit)
    copy = type(definition).from_json(json.loads(json.dumps(definition.to_json())))
    assert copy == definition
    assert copy.digest == definition.digest
