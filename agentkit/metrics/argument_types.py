"""The types that tools declare for arguments, as BFCL sees them, and values read by them.

What is found out here depends on the tool and the value alone. An answer is compared with several
gold calls, so its values are read once and not for each comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from agentkit.messages import JsonObject

_MAPPINGS = (dict, Mapping)  # nearly all are dicts, which is quick to see
_SCALARS = frozenset({str, int, float, bool, type(None)})

LISTS = (list, tuple)
"""To tell lists by; asking for ``list | tuple`` makes that union each time."""

_IGNORED_SIGNS = " ,./-_*^"
_PYTHON_TYPES: Mapping[object, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


class SourceType(Protocol):
    """A type of a language in which values are written as source text."""

    @property
    def python(self) -> type:
        """The Python type of its values."""

    @property
    def items(self) -> frozenset[type] | None:
        """The Python type of a list's elements; None when undeclared."""

    def read(self, value: Any) -> Any:
        """The value that an argument stands for."""


class Language(Protocol):
    """What values are written in where they are no plain JSON.

    ``agentkit-bench`` has Java and JavaScript, for BFCL.
    """

    @property
    def name(self) -> str:
        """Its name."""

    def source_type(self, schema: JsonObject) -> SourceType:
        """The declared type of an argument, whose schema has the language's names of types."""


class GivenValue(NamedTuple):
    """The value of an argument, ready to be compared.

    Attributes:
        value: What it stands for, in the declared type where that is clear.
        kind: Its type.
        is_declared: Whether that is a declared type.
        text: The string as it is compared leniently; None where no string is declared.
        elements: The elements of a list as they are compared; None where that is one by one.
        items_declared: Whether all elements of a list are of the declared type of its items.
    """

    value: Any
    kind: type
    is_declared: bool
    text: str | None = None
    elements: list[Any] | None = None
    items_declared: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ArgumentType:
    """What a tool declares for one argument.

    Attributes:
        kinds: The types of its values.
        items: The types of the elements of a list; None when undeclared.
        foreign: How source text is read; None where values are plain JSON.
    """

    kinds: frozenset[type]
    items: frozenset[type] | None = None
    foreign: SourceType | None = None

    def read(self, value: Any) -> GivenValue:
        """A value, ready to be compared."""
        if self.foreign is not None:
            value = self.foreign.read(value)
        kind = type(value)
        kinds = self.kinds
        if kind is str:
            is_text = str in kinds
            return GivenValue(value, str, is_text, standardised(value) if is_text else None)
        if kind is int and float in kinds and int not in kinds:
            value = _as_float(value)
            kind = type(value)
        elif kind is tuple:
            value, kind = list(value), list
        if kind is list and list in kinds:
            return self._read_list(value)
        return GivenValue(value, kind, kind in kinds)

    def _read_list(self, value: list[Any]) -> GivenValue:
        items = self.items
        if items is None:
            return GivenValue(value, list, is_declared=True, elements=list(map(plain, value)))
        return GivenValue(
            value,
            list,
            is_declared=True,
            elements=None if dict in items else list(map(plain, value)),
            items_declared=all(type(item) in items for item in value),
        )


def argument_type(
    schema: JsonObject, *, source: JsonObject | None = None, language: Language | None = None
) -> ArgumentType:
    """The type of one argument.

    Args:
        schema: The argument's JSON Schema.
        source: Its schema as the benchmark writes it, with the types of a language.
        language: Of the values; None for plain JSON.
    """
    if language is None:
        return ArgumentType(kinds=_declared(schema), items=_item_types(schema))
    foreign = language.source_type(source or schema)
    return ArgumentType(kinds=frozenset({foreign.python}), items=foreign.items, foreign=foreign)


def standardised(text: str) -> str:
    """A string without what the comparison ignores."""
    if text.isalnum():  # one word: there is nothing to leave out
        return text.lower()
    for sign in _IGNORED_SIGNS:  # two to four times as fast as str.translate
        text = text.replace(sign, "")
    return text.replace("'", '"').lower()


def is_object(value: Any) -> bool:
    """Whether a value is a JSON object."""
    return type(value) not in _SCALARS and isinstance(value, _MAPPINGS)


def plain(value: Any) -> Any:
    """A value inside another one as it is compared: strings leniently, all else to the letter."""
    return standardised(value) if isinstance(value, str) else value


def first_type(listed: Sequence[Any]) -> type | None:
    """The type of the first entry that is not the mark for "may be left out"."""
    for one in listed:
        if one != "":
            return type(one)
    return None


def _as_float(value: int) -> int | float:
    try:
        return float(value)
    except OverflowError:  # beyond any float: an integer where a number is due
        return value


def _declared(schema: JsonObject) -> frozenset[type]:
    names = schema.get("type", "string")
    if isinstance(names, list):
        return frozenset([_python_type(name) for name in names])
    return frozenset((_python_type(names),))


def _python_type(name: object) -> type:
    return _PYTHON_TYPES.get(name, str) if isinstance(name, str) else str


def _item_types(schema: JsonObject) -> frozenset[type] | None:
    items = schema.get("items")
    return _declared(items) if isinstance(items, _MAPPINGS) and "type" in items else None
