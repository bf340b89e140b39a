"""Functions that a model can not call are refused with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import pytest
from pydantic import BaseModel, Field

from agentkit.errors import DefinitionError
from agentkit.tools.decorator import tool

if TYPE_CHECKING:
    from decimal import Decimal


class Connection:
    """Something that JSON can not hold."""


class Arguments(BaseModel):
    """Some arguments."""


def star_args(*words: str): ...


def star_kwargs(**options: int): ...


def positional(x: int, /): ...


def opaque(city: str, connection: Connection): ...


def callback(then: Callable[[int], int]): ...


def opaque_result() -> Connection: ...


def hidden_default(n: Annotated[int, Field(default=3)]): ...


def field_default(n: int = Field(default=3, ge=1)): ...


def type_checking_only(price: Decimal): ...


def unreadable(x: "list[int"): ...  # noqa: F722 - the mistake is the point


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
        (star_kwargs, ["**options", "dict[str, Any]"]),
        (positional, ["'x' is positional-only", "remove the `/`"]),
        (opaque, ["parameter 'connection'", "Connection", "functools.partial"]),
        (callback, ["parameter 'then'", "Callable", "datetime"]),
        (opaque_result, ["the return value", "Connection"]),
        (hidden_default, ["default of 'n'", "Annotated[...] = <default>"]),
        (field_default, ["default of 'n' is a Field", "Annotated[<type>, Field(...)]"]),
        (type_checking_only, ["parameter 'price'", "'Decimal'", "TYPE_CHECKING"]),
        (unreadable, ["annotation can not be read"]),
        (stream, ["generator", "list"]),
        (Shop.search, ["'self'", "tool(instance.search)"]),
        (Arguments, ["not a function", "definition_from_model"]),
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
