"""Tools that demand nothing, whose results others need."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping

from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition


def defined(
    name: str,
    summary: str,
    parameters: Mapping[str, tuple[str, str]],
    *,
    optional: Iterable[str] = (),
) -> ToolDefinition:
    """A definition out of its parameters' types and texts.

    Args:
        name: The tool's name.
        summary: What it does.
        parameters: By name: the JSON type, or the allowed words with bars between; and the text.
        optional: Names of those that may be left out.
    """
    properties = {
        key: {**_schema(kind), "description": text} for key, (kind, text) in parameters.items()
    }
    left_out = set(optional)
    schema = {
        "type": "object",
        "properties": properties,
        "required": [key for key in parameters if key not in left_out],
    }
    return ToolDefinition.from_schema(name, summary, schema)


def _schema(kind: str) -> JsonObject:
    if "|" in kind:
        return {"type": "string", "enum": kind.split("|")}
    return {"type": kind}


PEOPLE = (
    *("Ann Lee", "Ben Stone", "Clara Hill", "David Marsh", "Eva Wood", "Frank Frost"),
    *("Greta Lake", "Hugo Field", "Ida North", "Jonas Berg", "Karin Dahl", "Leo Engel"),
    *("Maria Falk", "Nils Graf", "Olga Holm", "Paul Jansen", "Rosa Kern", "Simon Lund"),
    *("Tina Moll", "Viktor Nagel", "Wanda Olsen", "Xaver Peck", "Yara Quist", "Zoe Rask"),
    *("Amir Sand", "Bruno Thal", "Carla Urban", "Dora Voss", "Emil Wolf", "Fatima Ziegler"),
)
CITIES = (
    *("Lisbon", "Porto", "Madrid", "Lyon", "Paris", "Geneva", "Milan", "Rome", "Vienna", "Prague"),
    *("Berlin", "Hamburg", "Bremen", "Oslo", "Bergen", "Malmo", "Turku", "Riga", "Tallinn"),
    *("Warsaw", "Krakow", "Athens", "Sofia", "Dublin", "Cork", "Leeds", "York", "Bath", "Ghent"),
)
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


LOOKUPS: dict[str, ToolDefinition] = {
    "find_customer": defined(
        "find_customer", "Find a customer.", {"name": ("string", "Name of the person.")}
    ),
    "find_contract": defined(
        "find_contract", "Find a contract.", {"name": ("string", "Name of the person.")}
    ),
}
"""Tools without demands, whose results others need."""

_LETTERS = {"find_customer": "C", "find_contract": "K"}


def looked_up(tool: str, name: str) -> str:
    """What a lookup tells of a person: the same whenever it is asked.

    Example:
        >>> looked_up("find_customer", "Ann Lee") == looked_up("find_contract", "Ann Lee")
        False
    """
    number = zlib.crc32(f"{tool} {name.casefold()}".encode()) % 9000 + 1000
    return f"{_LETTERS[tool]}-{number}"
