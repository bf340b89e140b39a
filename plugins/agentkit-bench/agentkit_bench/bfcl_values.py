r"""Values written as Java or JavaScript source text, as BFCL reads them (``bfcl_eval`` 2026.3.23).

Upstream every argument of these categories is source text, and is read by its declared type. A
model that calls tools by JSON need not write source text: where a number is declared it may write
the number. Such a value is taken for the literal that denotes it:

* where a number, a boolean, a list or an object is declared, a value of that kind counts as it
  stands, whatever suffix or constructor the language would want. Integers count as ``float`` and
  ``double``;
* where text (``String``, ``char``, ``any``) is declared, a number, a boolean or null stands for
  its spelling: ``5`` for ``"5"``, ``true`` for ``"true"``.

Upstream refuses anything but text, since it asks its models for text only.

Java is read so; what does not fit its type stays text:

* ``byte``, ``short``, ``integer``: digits, perhaps with a minus. ``long``: the same with ``L``
  after it. ``double``: a decimal number, perhaps with an exponent; ``float``: the same with ``f``.
* ``boolean``: ``true`` or ``false``. ``String``, ``char`` and ``any`` stay text.
* ``ArrayList``: somewhere in the text ``new ArrayList<T>(Arrays.asList(1, 2))``, or
  ``new ArrayList<T>() {{ add(1); add(2); }}``, or ``new ArrayList<T>()``. Elements of type
  ``String`` and ``char`` lose their first and last character.
* ``Array``: somewhere in the text ``new T[]{1, 2}``. Elements of type ``String`` keep their quotes,
  so that no right array literal of strings ever passes upstream; a JSON list does here.
* ``HashMap``: somewhere in the text ``new HashMap<K, V>() {{ put("a", 1); }}`` or
  ``new HashMap<K, V>()``. A value is what its own form says: ``true``, ``"a"``, ``1L``, ``1.5f``
  or a Python number.
* Elements are parted at every comma, values end at the first closing bracket, also inside quotes.

The other collections have no reading upstream, where an answer that gives one ends the evaluation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.messages import JsonObject

# --- literals -------------------------------------------------------------------------------------


class NumberForm:
    """A spelling of numbers.

    Args:
        pattern: What such a number looks like.
        value: Gives the number.
        suffix: How many characters at the end only tell the type.
    """

    __slots__ = ("_pattern", "_suffix", "_value")

    def __init__(self, pattern: str, value: Callable[[str], Any], suffix: int = 0) -> None:
        self._pattern = re.compile(pattern)
        self._value = value
        self._suffix = suffix

    def read(self, text: str) -> Any:
        """The number; the text itself when it is none of this form."""
        spelled = text.removesuffix("\n")  # as upstream, whose `$` also stands before a line break
        if self._pattern.fullmatch(spelled) is None:
            return text
        try:
            return self._value(spelled[: len(spelled) - self._suffix])
        except ValueError:  # thousands of digits
            return text


def read_boolean(text: str) -> Any:
    """``true`` or ``false``; the text itself when it is neither."""
    return {"true": True, "false": False}.get(text, text)


def python_number(text: str) -> Any:
    """An integer or else a float, in any spelling that Python reads; the text itself if none."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def between(text: str, start: int, end: str) -> str | None:
    """What stands from ``start`` to the first ``end``; None when that is not on one line."""
    stop = text.find(end, start)
    if stop < 0:
        return None
    inside = text[start:stop]
    return None if "\n" in inside else inside


# --- Java -----------------------------------------------------------------------------------------

_NEW_LIST = re.compile(r"new\s+ArrayList<\w*>\(")
_NEW_JAVA_ARRAY = re.compile(r"new\s+\w+\[\]\s*\{")
_NEW_MAP = re.compile(r"new\s+HashMap<")
_MAP_BODY = re.compile(r">\s*\(\)(?:\s*\{\s*\{?)?")
_LIST_BODY = re.compile(r"\)\s*\{\{\s*")
_AS_LIST = "Arrays.asList("

JAVA_TYPES: Mapping[str, type] = {
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": bool,
    "char": str,
    "String": str,
    "any": str,
    "Array": list,
    "ArrayList": list,
    "HashMap": dict,
}
"""The Python type of the values of each Java type that upstream reads."""


def read_java(text: str, kind: str, item: str | None = None) -> Any:
    """The value that a text stands for; the text itself when it is no literal of the type.

    Args:
        text: Java source of one argument.
        kind: The declared type, one of ``JAVA_TYPES``.
        item: The declared type of the elements of a list.

    Example:
        >>> read_java("42L", "long"), read_java("42", "long"), read_java("new int[]{1}", "Array")
        (42, '42', [1])
    """
    if kind in _JAVA_SCALARS:
        return _JAVA_SCALARS[kind](text)
    match kind:
        case "ArrayList":
            return _array_list(text, item)
        case "Array":
            return _java_array(text, item)
        case "HashMap":
            return _hash_map(text)
    return text


_WHOLE = NumberForm(r"-?\d+", int)
_LONG = NumberForm(r"-?\d+[lL]", int, suffix=1)
_DOUBLE = NumberForm(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", float)
_FLOAT = NumberForm(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[fF]", float, suffix=1)

_JAVA_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "byte": _WHOLE.read,
    "short": _WHOLE.read,
    "integer": _WHOLE.read,
    "long": _LONG.read,
    "float": _FLOAT.read,
    "double": _DOUBLE.read,
    "boolean": read_boolean,
}


def _element(text: str, item: str | None) -> Any:
    """An element of an ``ArrayList``."""
    if item in {"String", "char"}:
        return text[1:-1]
    return _java_literal(text) if item is None else read_java(text, item)


def _java_literal(text: str) -> Any:
    """A value of no declared type, by its own form."""
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    for read in (read_boolean, _LONG.read, _FLOAT.read):
        found = read(text)
        if found is not text:
            return found
    return python_number(text)


def _array_list(text: str, item: str | None) -> Any:
    starts = [found.end() for found in _NEW_LIST.finditer(text)]
    for start in starts:
        listed = text.startswith(_AS_LIST, start)
        inside = between(text, start + len(_AS_LIST), "))") if listed else None
        if inside:
            return [_element(part.strip(), item) for part in inside.split(",")]
    for start in starts:
        opened = _LIST_BODY.match(text, start)
        end = -1 if opened is None else text.find("}}", opened.end())
        if opened is not None and end >= 0:
            return [_element(part.strip(), item) for part in _added(text[opened.end() : end])]
    return [] if any(text.startswith(")", start) for start in starts) else text


def _added(block: str) -> Iterator[str]:
    """What each ``add(...)`` adds."""
    at = block.find("add(")
    while at >= 0:
        inside = between(block, at + 4, ")")
        if inside:
            yield inside
        at = block.find("add(", at + 4 + len(inside or ""))


def _java_array(text: str, item: str | None) -> Any:
    for found in _NEW_JAVA_ARRAY.finditer(text):
        inside = between(text, found.end(), "}")
        if inside is not None:
            parts = [part.strip() for part in inside.split(",") if part.strip()]
            return [
                _java_literal(part) if item is None else read_java(part, item) for part in parts
            ]
    return text


def _hash_map(text: str) -> Any:
    bodies = [
        body for found in _NEW_MAP.finditer(text) if (body := _MAP_BODY.search(text, found.end()))
    ]
    for body in bodies:
        end = text.find("}", body.end())
        if "{" in body.group() and end >= 0:
            return dict(_put(text[body.end() : end]))
    return {} if bodies else text


def _put(block: str) -> Iterator[tuple[str, Any]]:
    """Key and value of each ``put("key", value)``."""
    for part in block.split('put("')[1:]:
        key, comma, rest = part.partition('",')
        value, bracket, _ = rest.lstrip().partition(")")
        if comma and bracket and "\n" not in key + value:
            yield key, _java_literal(value.strip())


# --- JavaScript -----------------------------------------------------------------------------------

_NEW_SCRIPT_ARRAY = re.compile(r"new\s+Array\(")
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
    if kind in _SCRIPT_SCALARS:
        return _SCRIPT_SCALARS[kind](text)
    match kind:
        case "array":
            return _script_array(text.strip(), item)
        case "dict":
            return _object(text.strip())
    return text


def _string(text: str) -> str:
    return text[1:-1] if _is_quoted(text) else text


def _is_quoted(text: str) -> bool:
    return any(text.startswith(quote) and text.endswith(quote) for quote in "\"'")


_SCRIPT_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "String": _string,
    "integer": NumberForm(r"-?\d+", int).read,
    "float": NumberForm(r"-?\d+(?:\.\d+)?", float).read,
    "Bigint": NumberForm(r"-?\d+n", int, suffix=1).read,
    "Boolean": read_boolean,
}


def _script_literal(text: str) -> Any:
    """A value of no declared type, by its own form."""
    text = text.strip()
    if _is_quoted(text):
        return text[1:-1]
    found = read_boolean(text)
    return python_number(text) if found is text else found


def _script_array(text: str, item: str | None) -> Any:
    rows = _rows(text)
    if rows is not None:
        return [[_script_literal(part) for part in row.split(",")] for row in rows]
    opened = _NEW_SCRIPT_ARRAY.match(text)
    start, end = (opened.end(), ")") if opened else (1, "]")
    inside = between(text, start, end) if opened or text.startswith("[") else None
    if inside is None:
        return text
    parts = [part.strip() for part in inside.split(",")] if inside.strip() else []
    return [
        _script_literal(part) if item is None else read_javascript(part, item) for part in parts
    ]


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
        return _script_array(text, None)
    return _script_literal(text.strip("'\""))


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


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLanguage:
    """A language in which gold values are written as source text; for ``AllowedCalls.language``.

    Attributes:
        name: Its name.
        types: The Python types of the language's types.
        read_text: Reads source text: text, type, type of elements.
    """

    name: Literal["java", "javascript"]
    types: Mapping[str, type]
    read_text: Callable[[str, str, str | None], Any]

    def source_type(self, schema: JsonObject) -> ForeignType:
        """The declared type of an argument.

        Args:
            schema: The argument's schema with the language's names of types. Where it has those of
                JSON Schema instead, the nearest type stands for it; of several the first; an
                unknown one is ``any``.
        """
        name, items = self._name(schema), schema.get("items")
        item = None
        if self.types[name] is list and isinstance(items, Mapping) and "type" in items:
            item = self._name(items)
        return ForeignType(name=name, item=item, types=self.types, read_text=self.read_text)

    def _name(self, part: JsonObject) -> str:
        given = part.get("type")
        given = given[0] if isinstance(given, list) and given else given
        given = _JSON_NAMES[self.name].get(given, given) if isinstance(given, str) else "any"
        return given if given in self.types else "any"


JAVA = SourceLanguage(name="java", types=JAVA_TYPES, read_text=read_java)
JAVASCRIPT = SourceLanguage(name="javascript", types=JAVASCRIPT_TYPES, read_text=read_javascript)
