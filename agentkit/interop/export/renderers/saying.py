"""Keywords of JSON Schema in words, for formats that do not have them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.interop.export.renderers.rendering import Loss, Went
from agentkit.messages import JsonObject

PHRASES: Mapping[str, str] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
    "pattern": "like the regular expression {}",
    "format": "in the format {}",
    "enum": "one of {}",
    "const": "exactly {}",
}
"""What keywords say of a value, behind *must be*."""

_COUNTED = frozenset({"minLength", "maxLength", "minItems", "maxItems"})

SILENT = frozenset({"$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "$vocabulary"})
"""Keywords that say nothing about a value: they are not put into words."""


@dataclass(kw_only=True, slots=True)
class Notes:
    """Collects what is lost while one tool is rendered.

    Attributes:
        tool: Its name in the library.
        losses: What was noted so far.
    """

    tool: str
    losses: list[Loss] = field(default_factory=list)

    def note(self, keyword: str, place: str, went: Went, detail: str) -> None:
        """Keep one loss."""
        self.losses.append(
            Loss(tool=self.tool, keyword=keyword, place=place or "/", went=went, detail=detail)
        )

    def say(self, schema: dict[str, Any], moved: Mapping[str, Any], place: str) -> dict[str, Any]:
        """The schema with keywords put into its description, each of them noted.

        Args:
            schema: What the format can say.
            moved: The keywords that it can not.
            place: Where the schema stands.
        """
        told = {key: value for key, value in moved.items() if key not in SILENT}
        for key in moved:
            if key in told:
                self.note(key, place, "text", f"{key} is told in the description")
            else:
                self.note(key, place, "dropped", f"{key} says nothing about values")
        if not told:
            return schema
        words = in_words(told)
        return {**schema, "description": joined(str(schema.get("description", "")), words)}


def in_words(keywords: Mapping[str, Any]) -> str:
    """Keywords of one schema as a sentence or two.

    Example:
        >>> in_words({"minLength": 3, "format": "date", "default": "2026-01-01"})
        'Must be at least 3 characters long, in the format date. Default: "2026-01-01".'
    """
    parts = [_phrase(key, value) for key, value in keywords.items() if key in PHRASES]
    sentences = [f"Must be {', '.join(parts)}."] if parts else []
    if keywords.get("uniqueItems"):
        sentences.append("No item may come twice.")
    if "default" in keywords:
        sentences.append(f"Default: {_json(keywords['default'])}.")
    if examples := keywords.get("examples"):
        sentences.append(f"For example {_shown(examples)}.")
    others = {
        key: value
        for key, value in keywords.items()
        if key not in PHRASES and key not in {"default", "uniqueItems", "examples"}
    }
    if others:
        sentences.append(f"Must fit the JSON Schema {_json(others)}.")
    return " ".join(sentences)


def joined(text: str, more: str) -> str:
    """A description and sentences after it.

    Example:
        >>> joined("The city", "Must be at least 2 characters long.")
        'The city. Must be at least 2 characters long.'
    """
    before = text.strip()
    stop = "." if before and more and before[-1].isalnum() else ""
    return f"{before}{stop} {more}".strip()


def _phrase(key: str, value: Any) -> str:
    phrase = PHRASES[key].format(_shown(value))
    if value == 1 and key in _COUNTED:  # one character, one item
        return phrase.replace("characters", "character").replace("items", "item")
    return phrase


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_json, value))
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


MOST_SCHEMAS = 5_000
"""Schemas that resolving may make of one; definitions that refer to each other can grow without
bound."""


class RecursiveReference(Exception):  # noqa: N818 - a way out of the walk, never seen by callers
    """A schema refers to itself, or to nothing that is there."""


def resolved(schema: JsonObject, root: JsonObject, path: tuple[str, ...]) -> dict[str, Any]:
    """A schema without a reference at its top; what stands beside the reference wins.

    Args:
        schema: One that may hold ``$ref``.
        root: What local references point into.
        path: References that were followed on the way here.

    Raises:
        RecursiveReference: It was followed before, or leads nowhere.
    """
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return dict(schema)
    if reference in path:
        raise RecursiveReference(reference)
    target = _target(reference, root)
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**resolved(target, root, (*path, reference)), **beside}


def followed(schema: JsonObject, root: JsonObject, path: tuple[str, ...]) -> tuple[str, ...]:
    """The references on the way into a schema, with those at its own top."""
    reference = schema.get("$ref")
    while isinstance(reference, str) and reference not in path:
        path = (*path, reference)
        reference = _target(reference, root).get("$ref")
    return path


def _target(reference: str, root: JsonObject) -> JsonObject:
    if not reference.startswith("#"):
        raise RecursiveReference(reference)
    place: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, Mapping) or key not in place:
            raise RecursiveReference(reference)
        place = place[key]
    if not isinstance(place, Mapping):
        raise RecursiveReference(reference)
    return place
