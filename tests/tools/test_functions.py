"""Functions become tools: the schema from annotations and defaults, the words from the docstring."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import re
import time
import typing
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, BaseModel, Field, model_validator
from typing_extensions import TypedDict

from agentkit.errors import DefinitionError, ModelRetry, UsageError
from agentkit.tools import Effects, Example, Specification
from agentkit.tools.decorator import tool
from agentkit.tools.sources.annotations import plain_schema
from agentkit.tools.sources.docstrings import read_docstring
from agentkit.tools.sources.function import pydantic_schema

# --- schemas of functions -------------------------------------------------------------------------


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


def schema_of(annotation: Any, **default: Any) -> dict[str, Any]:
    """The parameters schema of a function with one parameter."""

    def function(value): ...

    function.__annotations__ = {"value": annotation}
    if default:
        function.__defaults__ = (default["default"],)
    schema = dict(tool(function).definition.parameters_schema)
    Draft202012Validator.check_schema(schema)
    return schema


def test_plain_function() -> None:
    """Scalars, defaults and words give the schema that one would write by hand."""

    def book(
        city: str,
        nights: int = 1,
        kind: Literal["hotel", "flat"] = "hotel",
        tags: Annotated[list[str], "Wishes."] = [],  # noqa: B006 - a common default in the wild
    ) -> dict[str, Any]:
        """Book a room.

        Args:
            city: Where.
            nights: How long.
            kind: What.
            tags: Words in the annotation win over these.
        """
        return {}

    assert tool(book).definition.parameters_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "nights": {"type": "integer", "default": 1, "description": "How long."},
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
        },
        "required": ["city"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (datetime, {"type": "string", "format": "date-time"}),
        (date | None, {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}),
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
    ],
)
def test_other_annotations(annotation, expected) -> None:
    """Dates, sets, tuples, constraints and containers have their schema inline."""
    assert schema_of(annotation)["properties"]["value"] == expected


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


# --- functions that a model cannot call ----------------------------------------------------------

if TYPE_CHECKING:
    from decimal import Decimal


class Connection:
    """Something that JSON cannot hold."""


class Arguments(BaseModel):
    """Some arguments."""


def star_args(*words: str): ...


def positional(x: int, /): ...


def opaque(city: str, connection: Connection): ...


def hidden_default(n: Annotated[int, Field(default=3)]): ...


def field_default(n: int = Field(default=3, ge=1)): ...


def type_checking_only(price: Decimal): ...


def stream() -> Iterator[int]:
    """Count."""
    yield 1


class Shop:
    """A shop."""

    def search(self, query: str) -> str:
        """Search."""
        return query


@pytest.mark.parametrize(
    ("function", "fragments"),
    [
        (star_args, ["star_args", "*words", "list[str]"]),
        (positional, ["'x' is positional-only", "remove the `/`"]),
        (opaque, ["parameter 'connection'", "Connection", "functools.partial"]),
        (hidden_default, ["default of 'n'", "Annotated[...] = <default>"]),
        (field_default, ["default of 'n' is a Field", "Annotated[<type>, Field(...)]"]),
        (type_checking_only, ["'Decimal'", "TYPE_CHECKING"]),
        (stream, ["generator", "list"]),
        (Shop.search, ["'self'", "tool(instance.search)"]),
        (Arguments, ["not a function", "a function that takes one"]),
        (min, ["min", "wrap it in a function"]),
    ],
)
def test_refusal_names_the_cause_and_the_way_out(function, fragments) -> None:
    """The message says which parameter is to blame and what to write instead."""
    with pytest.raises(DefinitionError) as caught:
        tool(function)
    assert caught.value.tool_name
    for fragment in fragments:
        assert re.search(re.escape(fragment), str(caught.value)), str(caught.value)


# --- the decorator --------------------------------------------------------------------------------


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


class Counter:
    """Something with state."""

    def __init__(self, start: int) -> None:
        self.start = start

    def count(self, steps: int) -> int:
        """Count on."""
        return self.start + steps

    async def count_slowly(self, steps: int) -> int:
        """Count on, later."""
        return self.start + steps


def test_every_option_reaches_the_tool() -> None:
    """What the author gives wins over what the code says."""
    made = tool(
        name="plus",
        description="Sum of two.",
        effects=("reads",),
        tags=("math",),
        usage_rules=("Use it for sums.",),
        pre=("a >= 0",),
        post=("result >= a",),
        complexity="O(1)",
        examples=[{"arguments": {"a": 1, "b": 2}, "result": 3, "query": "1 plus 2"}],
        timeout_seconds=2.5,
        max_retries=0,
        requires_approval=True,
    )(add)
    definition = made.definition
    assert definition.name == "plus"
    assert definition.text == "Sum of two.\nUse it for sums."
    assert definition.signature.effects == Effects(reads=True, writes=False)
    assert definition.description.tags == ("math",)
    assert definition.specification == Specification(
        pre=("a >= 0",), post=("result >= a",), complexity="O(1)"
    )
    assert definition.examples == (Example(arguments={"a": 1, "b": 2}, result=3, query="1 plus 2"),)
    assert (made.timeout_seconds, made.max_retries, made.needs_approval) == (2.5, 0, True)
    assert made(1, 2) == 3


async def test_partials_hide_what_they_bind() -> None:
    """Values bound by ``functools.partial`` are neither shown to the model nor asked of it."""

    def search(connection: object, query: str, limit: int = 5, *, user: str) -> str:
        """Search."""
        return f"{connection}:{query}:{limit}:{user}"

    bound = tool(functools.partial(search, "db", user="ada"))
    assert bound.name == "search"
    assert list(bound.definition.signature.properties) == ["query", "limit"]
    assert bound(query="x") == "db:x:5:ada"
    slow = tool(functools.partial(Counter(1).count_slowly, steps=2))
    assert slow.is_async
    assert await slow() == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": "math"}, r"tags=\['math'\]"),
        ({"effects": "reads"}, r"effects=\['reads'\]"),
        ({"timeout_seconds": 0}, "timeout_seconds must be positive"),
        ({"max_retries": -1}, "max_retries must be 0 or more"),
        ({"effect": ("reads",)}, "@tool knows no effect"),
    ],
)
def test_misused_options(options, message) -> None:
    """An option of the wrong kind is refused with what to write instead."""
    with pytest.raises(UsageError, match=message):
        tool(add, **options)


@pytest.mark.parametrize("example", [{"arguments": {"a": "one"}}, {"args": {}}])
def test_example_that_breaks_the_schema_is_refused(example) -> None:
    """A worked example has to be a valid call of its own tool."""
    with pytest.raises(DefinitionError, match="example"):
        tool(add, examples=[example])


# --- conversion of arguments ----------------------------------------------------------------------


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


def google(make: str, price: float = 3.0) -> list[str]:
    """Find cars.

    Only cars in stock
    are found.

    Args:
        make: The brand.
        price (float): Most that may be paid,
            in euros.

    Returns:
        Names of cars.

    Raises:
        ValueError: If the price is negative.
    """
    return []


def numpy(make: str, price: float = 3.0) -> list[str]:
    """Find cars.

    Only cars in stock
    are found.

    Parameters
    ----------
    make : str
        The brand.
    price : float, optional
        Most that may be paid,
        in euros.

    Returns
    -------
    list of str
        Names of cars.

    Raises
    ------
    ValueError
        If the price is negative.
    """  # noqa: D416 - NumPy's sections have no colon
    return []


def rest(make: str, price: float = 3.0) -> list[str]:
    """Find cars.

    Only cars in stock
    are found.

    :param make: The brand.
    :param float price: Most that may be paid,
        in euros.
    :returns: Names of cars.
    :raises ValueError: If the price is negative.
    """
    return []


@pytest.mark.parametrize("function", [google, numpy, rest])
def test_styles_say_the_same(function) -> None:
    """Google, NumPy and reST give the same definition."""
    definition = tool(function).definition
    assert definition.description.summary == "Find cars.\n\nOnly cars in stock\nare found."
    assert definition.description.parameters == {
        "make": "The brand.",
        "price": "Most that may be paid, in euros.",
    }
    assert definition.specification.text == ("Raises ValueError: If the price is negative.",)
    assert definition.signature.result is not None
    assert definition.signature.result["description"] == "Names of cars."


PUMPS = {
    "brackets": lambda n: "x " + "(" * n + ":",
    "spaces and brackets": lambda n: "x" + " " * n + "(" * n + ":",
    "spaces": lambda n: "x" + " " * n + "y : z",
    "underscores": lambda n: "param x" + "_" * n + "!",
    "colons": lambda n: ":" * n,
    "dashes": lambda n: "-" * n + "x",
    "fields": lambda n: "a\n@b\n:c" * (n // 7),
    "defaults": lambda n: "x : int, default  '\n    " + "default '" * (n // 9),
}


@pytest.mark.parametrize("pump", PUMPS)
@pytest.mark.parametrize(
    "head",
    ["Args:\n    ", "Returns:\n    ", "Parameters\n----------\n", "Returns\n-------\n", ":param "],
)
def test_a_docstring_is_read_in_linear_time(head, pump) -> None:
    """No style and no repeated part of a stranger's docstring keeps the interpreter busy."""
    started = time.process_time()
    found = read_docstring(f"Add.\n\n{head}{PUMPS[pump](6_000)}\n")
    assert time.process_time() - started < 2
    assert found.summary.startswith("Add.")
