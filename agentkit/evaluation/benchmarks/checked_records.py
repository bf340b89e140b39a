"""Foreign records, checked by pydantic, with reasons that a person can act on."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import TypeAdapter

STRICT: dict[str, Any] = {"extra": "forbid", "strict": True}
"""Configuration of a dataclass that stands for a JSON object: no other field, no conversion."""

Record = TypeVar("Record", bound="DataclassInstance")


class RecordError(ValueError):
    """A part of a record is not what it has to be; the message is the reason."""


def checked(kind: type[Record], value: object, where: str = "") -> Record:
    """``value`` as a record.

    Args:
        kind: A dataclass that describes the JSON object.
        value: Decoded JSON.
        where: Dotted path of the value, for the reason.

    Raises:
        RecordError: It does not fit; the message names the first place where.
    """
    from pydantic import ValidationError

    try:
        # as text, for pydantic's strict mode takes a dict for a record only out of JSON
        record: Record = _adapter(kind).validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join([*filter(None, [where]), *map(str, first["loc"])]) or "the row"
        if first["type"] == "unexpected_keyword_argument":
            known = [one.name for one in fields(kind)] if len(first["loc"]) == 1 else []
            there_are = f"; there are {', '.join(known)}" if known else ""
            raise RecordError(f"{place}: there is no such field{there_are}") from error
        if first["type"] == "missing":
            raise RecordError(f"{place}: is missing") from error
        said = first["msg"].removeprefix("Input ")
        raise RecordError(f"{place}: {said}, got {first['input']!r:.60}") from error
    return record


@cache
def _adapter(kind: type[Record]) -> TypeAdapter[Record]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
