"""``Expr``: the type of a parameter that takes an expression, such as a filter on rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from agentkit.errors import UsageError
from agentkit.messages import JsonObject

KEYWORD = "x-expression"
"""The schema keyword that holds an expression's names and its result."""

_FORM = re.compile(r"(?P<names>\w+(\s*,\s*\w+)*)\s*->\s*(?P<result>\w+)")
_RESULTS = {
    "Any": None,
    "bool": "boolean",
    "float": "number",
    "int": "integer",
    "str": "string",
}


class Expr:
    """A predicate or formula as text, in the composite language.

    A model can write ``row["amount"] > 10`` where it could not write a function. In Python files
    that type checkers read, write ``Annotated[str, Expr("row -> bool")]``; elsewhere
    ``Expr["row -> bool"]`` says the same.

    Args:
        form: The names that the expression may use, an arrow, and what it gives: ``bool``,
            ``int``, ``float``, ``str`` or ``Any``.

    Attributes:
        names: The names, in order.
        result: The JSON type of what it gives; None for anything.

    Raises:
        UsageError: ``form`` has another form.

    Example:
        >>> Expr("row -> bool").schema
        {'format': 'expression', 'x-expression': {'names': ['row'], 'result': 'boolean'}}
    """

    __slots__ = ("names", "result")

    def __init__(self, form: str) -> None:
        match = _FORM.fullmatch(form.strip())
        names = tuple(re.split(r"\s*,\s*", match["names"])) if match else ()
        if not match or match["result"] not in _RESULTS or not all(map(str.isidentifier, names)):
            raise UsageError(
                f'Expr({form!r}) does not say what goes in and out; write Expr("row -> bool") '
                f"with names, an arrow and one of {', '.join(_RESULTS)}"
            )
        self.names: tuple[str, ...] = names
        self.result: str | None = _RESULTS[match["result"]]

    def __class_getitem__(cls, form: str) -> Any:
        return Annotated[str, cls(form)]

    @property
    def schema(self) -> JsonObject:
        """What the parameter's JSON Schema says beside ``"type": "string"``."""
        facts = {"names": list(self.names), "result": self.result}
        return {
            "format": "expression",
            KEYWORD: {key: fact for key, fact in facts.items() if fact is not None},
        }

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        return {**handler(core_schema), **self.schema}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.schema == other.schema

    def __hash__(self) -> int:
        return hash((self.names, self.result))

    def __repr__(self) -> str:
        names = {json: name for name, json in _RESULTS.items()}
        return f'Expr("{", ".join(self.names)} -> {names[self.result]}")'
