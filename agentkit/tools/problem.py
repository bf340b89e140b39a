"""``ArgumentProblem``: one broken rule, in words that a small model understands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from agentkit.messages import JsonObject, ToolFailure

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class ArgumentProblem:
    """One rule that arguments break.

    Attributes:
        path: Keys and indexes down to the value; for a missing or unknown argument, down to where
            it is missing or stands.
        rule: One plain sentence, such as ``missing required argument `city```.
        keyword: The JSON Schema keyword that states the rule.
        schema_excerpt: The part of the schema to read, if one part says it all.
        nearest: Names or values that are allowed and look like what was given, best first.
    """

    path: tuple[str | int, ...]
    rule: str
    keyword: str
    schema_excerpt: JsonObject | None = None
    nearest: tuple[str, ...] = ()

    @property
    def path_text(self) -> str:
        """The path as text: ``address.city``, ``items[0].sku``; empty for the whole call."""
        return path_text(self.path)

    def failure(self) -> ToolFailure:
        """The problem as the failure of the call whose arguments these are."""
        return ToolFailure(
            kind="invalid_arguments",
            rule=self.rule,
            path=self.path_text,
            schema_excerpt=self.schema_excerpt,
            nearest=self.nearest,
            cause=self.keyword,
        )


def path_text(path: tuple[str | int, ...]) -> str:
    """A path as text.

    Example:
        >>> path_text(("items", 0, "sku"))
        'items[0].sku'
    """
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def value_text(value: Any) -> str:
    """A value for a sentence: its kind and, shortened, itself.

    Example:
        >>> value_text("3"), value_text(3), value_text(None), value_text([1, 2])
        ("the string '3'", 'the number 3', 'null', 'the list [1, 2]')
    """
    if isinstance(value, str):
        return f"the string {_shortened(value)!r}"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {_shortened(_digits(value))}"
    kind = "list" if isinstance(value, list | tuple) else "object"
    return f"the {kind} {_shortened(_as_json(value))}"


def _digits(value: float) -> str:
    try:
        return str(value)
    except ValueError:  # an integer with more digits than Python prints
        return "with very many digits"


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "…"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
