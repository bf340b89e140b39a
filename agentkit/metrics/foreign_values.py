"""Arguments of BFCL's Java and JavaScript categories, whose types are those of the language.

Upstream every argument of these categories is source text, and is read by its declared type
(``agentkit.metrics.java_values``, ``agentkit.metrics.javascript_values``). A model that calls
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.messages import JsonObject
from agentkit.metrics.java_values import JAVA_TYPES, read_java
from agentkit.metrics.javascript_values import JAVASCRIPT_TYPES, read_javascript

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
