"""Arguments of BFCL's Java and JavaScript categories, whose types are those of the language.

Upstream every argument of these categories is source text, and is read by its declared type
(``agentkit.metrics.java_values``, ``agentkit.metrics.foreign_values``). A model that calls
tools by JSON need not write source text: where a number is declared it may write the number. Such
a value is taken for the literal that denotes it:

* where a number, a boolean, a list or an object is declared, a value of that kind counts as it
  stands, whatever suffix or constructor the language would want. Integers count as ``float`` and
  ``double``;
* where text (``String``, ``char``, ``any``) is declared, a number, a boolean or null stands for
  its spelling: ``5`` for ``"5"``, ``true`` for ``"true"``.

Upstream refuses anything but text, since it asks its models for text only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.messages import JsonObject
from agentkit.metrics.java_values import JAVA_TYPES, read_java
from agentkit.metrics.literals import NumberForm, between, python_number, read_boolean

_NEW_ARRAY = re.compile(r"new\s+Array\(")
_ROWS = re.compile(r"(?:\[|new\s+Array\()\s*\[")
_NEXT_ROW = re.compile(r"\s*,\s*\[")
_ROW = re.compile(r"\[([^\]\n]*)\]")

JAVASCRIPT_TYPES: Mapping[str, type] = {
    "String": str,
    "integer": int,
    "float": float,
    "Bigint": int,
    "Boolean": bool,
    "dict": dict,
    "array": list,
    "any": str,
}
"""The Python type of the values of each JavaScript type."""


def read_javascript(text: str, kind: str, item: str | None = None) -> Any:
    """The value that a text stands for; the text itself when it is no literal of the type.

    Args:
        text: JavaScript source of one argument.
        kind: The declared type, one of ``JAVASCRIPT_TYPES``.
        item: The declared type of the elements of a list.

    Example:
        >>> read_javascript("{a: 'x', b: [1, 2]}", "dict")
        {'a': 'x', 'b': [1, 2]}
    """
    if kind in _SCALARS:
        return _SCALARS[kind](text)
    match kind:
        case "array":
            return _array(text.strip(), item)
        case "dict":
            return _object(text.strip())
    return text


def _string(text: str) -> str:
    return text[1:-1] if _is_quoted(text) else text


def _is_quoted(text: str) -> bool:
    return any(text.startswith(quote) and text.endswith(quote) for quote in "\"'")


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "String": _string,
    "integer": NumberForm(r"-?\d+", int).read,
    "float": NumberForm(r"-?\d+(?:\.\d+)?", float).read,
    "Bigint": NumberForm(r"-?\d+n", int, suffix=1).read,
    "Boolean": read_boolean,
}


def _literal(text: str) -> Any:
    """A value of no declared type, by its own form."""
    text = text.strip()
    if _is_quoted(text):
        return text[1:-1]
    found = read_boolean(text)
    return python_number(text) if found is text else found


def _array(text: str, item: str | None) -> Any:
    rows = _rows(text)
    if rows is not None:
        return [[_literal(part) for part in row.split(",")] for row in rows]
    opened = _NEW_ARRAY.match(text)
    start, end = (opened.end(), ")") if opened else (1, "]")
    inside = between(text, start, end) if opened or text.startswith("[") else None
    if inside is None:
        return text
    parts = [part.strip() for part in inside.split(",")] if inside.strip() else []
    return [_literal(part) if item is None else read_javascript(part, item) for part in parts]


def _rows(text: str) -> list[str] | None:
    """What stands in each list of a list of lists; None when the text is none."""
    opened = _ROWS.match(text)
    if opened is None:
        return None
    closing = re.compile(r"\s*\)" if text.startswith("n") else r"\s*\]")
    at = opened.end()
    while True:
        end = text.find("]", at)
        if end < 0 or "\n" in text[at:end]:
            return None
        if closed := closing.match(text, end + 1):
            whole = text[opened.end() - 1 : closed.end()]
            return [found.group(1) for found in _ROW.finditer(whole)]
        following = _NEXT_ROW.match(text, end + 1)
        at = following.end() if following else end + 1


def _object(text: str) -> Any:
    inside = between(text, 1, "}") if text.startswith("{") else None
    if inside is None:
        return text
    return {key.strip().strip("'\""): _member(value.strip()) for key, value in _pairs(inside)}


def _member(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return _array(text, None)
    return _literal(text.strip("'\""))


def _pairs(inside: str) -> Iterator[tuple[str, str]]:
    """Keys and values of an object, parted at commas that a further key follows."""
    at = 0
    while (colon := inside.find(":", at)) >= 0:
        if colon == at:  # a key has at least one character
            at += 1
            continue
        comma = inside.find(",", colon + 1)
        while comma >= 0:
            following = inside.find(",", comma + 1)
            if ":" in inside[comma + 2 : following if following >= 0 else None]:
                break
            comma = following
        yield inside[at:colon], inside[colon + 1 : comma if comma >= 0 else None]
        if comma < 0:
            return
        at = comma + 1


Language = Literal["python", "java", "javascript"]
"""What the values of a category are written in; ``python``: they are plain JSON."""

_JSON_NAMES: Mapping[str, Mapping[str, str]] = {
    "java": {"string": "String", "number": "double", "array": "ArrayList", "object": "HashMap"},
    "javascript": {"string": "String", "number": "float", "boolean": "Boolean", "object": "dict"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignType:
    """A declared type of Java or JavaScript.

    Attributes:
        name: Its name.
        item: The name of the type of a list's elements; None when undeclared.
        types: The Python types of the language's types.
        read_text: Reads source text: text, type, type of elements.
    """

    name: str
    item: str | None
    types: Mapping[str, type]
    read_text: Callable[[str, str, str | None], Any]

    @property
    def python(self) -> type:
        """The Python type of its values."""
        return self.types[self.name]

    @property
    def items(self) -> frozenset[type] | None:
        """The Python type of a list's elements."""
        return None if self.item is None else frozenset({self.types[self.item]})

    def read(self, value: Any) -> Any:
        """The value that an argument stands for."""
        if isinstance(value, str):
            return self.read_text(value, self.name, self.item)
        if self.python is str and isinstance(value, bool | int | float | None):
            return _spelled(value)
        return value


def _spelled(value: Any) -> Any:
    try:
        return json.dumps(value)
    except ValueError:  # an integer of thousands of digits
        return value


def foreign_type(language: Literal["java", "javascript"], schema: JsonObject) -> ForeignType:
    """The declared type of an argument.

    Args:
        language: The language.
        schema: The argument's schema with the language's names of types. Where it has those of
            JSON Schema instead, the nearest type stands for it; of several the first; an unknown
            one is ``any``.
    """
    types, read = (
        (JAVA_TYPES, read_java) if language == "java" else (JAVASCRIPT_TYPES, read_javascript)
    )

    def name_of(part: JsonObject) -> str:
        given = part.get("type")
        given = given[0] if isinstance(given, list) and given else given
        given = _JSON_NAMES[language].get(given, given) if isinstance(given, str) else "any"
        return given if given in types else "any"

    name, items = name_of(schema), schema.get("items")
    item = None
    if types[name] is list and isinstance(items, Mapping) and "type" in items:
        item = name_of(items)
    return ForeignType(name=name, item=item, types=types, read_text=read)
