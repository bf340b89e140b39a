"""``Rendering``: tools in a format of others, and what that format could not say.

What a format has no keyword for is told in words; references are written out where it has none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import resolve_local
from agentkit.tools.tool import Tool

Tools: TypeAlias = "Library | Iterable[Tool | ToolDefinition]"

Went = Literal["text", "changed", "dropped"]
"""Where it went: into words that the model reads; into another keyword or name; nowhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """One thing that a format can not say as the library says it.

    Attributes:
        tool: The tool, by its name in the library.
        keyword: What: a keyword of JSON Schema, or a part of a definition such as ``examples``.
        place: Where: a JSON pointer into the schema of the arguments; empty for the whole tool.
        went: What became of it.
        detail: The same in words.
    """

    tool: str
    keyword: str
    place: str = ""
    went: Went
    detail: str

    def to_json(self) -> dict[str, str]:
        """The loss as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """Tools as a format has them.

    Attributes:
        value: JSON data, or text.
        losses: What could not be said, in the order of the tools.
        names: The tool's name in the library, by the name that it has in ``value``.
        schemas: What calls are held to, by the name in ``value``.
    """

    value: Any
    losses: tuple[Loss, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, JsonObject] = field(default_factory=dict)

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """A model's call in the terms of the library.

        Strict formats make a model give every argument, null for one to be left out. Such nulls
        are taken out again where the tool does not take null itself.

        Args:
            name: What the model called.
            arguments: What it gave.

        Example:
            >>> schema = {"type": "object", "properties": {"digits": {"type": "integer"}}}
            >>> rendering = Rendering(
            ...     value=[], names={"math_round": "math.round"}, schemas={"math_round": schema}
            ... )
            >>> rendering.call("math_round", {"digits": None})
            ('math.round', {})
        """
        schema = self.schemas.get(name, {})
        given = _without_nulls(dict(arguments), schema)
        return self.names.get(name, name), given

    def counts(self) -> dict[str, int]:
        """How often each keyword could not be said, the most frequent first."""
        return dict(Counter(loss.keyword for loss in self.losses).most_common())


def definitions_of(tools: Tools) -> tuple[ToolDefinition, ...]:
    """The definitions of whatever holds tools, each name once."""
    library = tools if isinstance(tools, Library) else Library(tools)
    return library.definitions


def rendering_of(
    value: Any,
    definitions: Iterable[ToolDefinition],
    losses: Iterable[Loss],
    names: Mapping[str, str] | None = None,
) -> Rendering:
    """The rendering of some tools.

    Args:
        value: What the format has of them.
        definitions: The tools.
        losses: What could not be said.
        names: The names that the format has, by the library's; None where they are the same.
    """
    given = {one.name: one.name if names is None else names[one.name] for one in definitions}
    return Rendering(
        value=value,
        losses=tuple(losses),
        names={name: own for own, name in given.items()},
        schemas={given[one.name]: one.signature.parameters for one in definitions},
    )


def _without_nulls(value: Any, schema: Any) -> Any:
    if isinstance(value, list) and isinstance(schema, Mapping):
        return [_without_nulls(item, schema.get("items", {})) for item in value]
    if not isinstance(value, Mapping) or not isinstance(schema, Mapping):
        return value
    properties, required = schema.get("properties", {}), schema.get("required", ())
    kept: dict[str, Any] = {}
    for name, item in value.items():
        part = properties.get(name, {})
        if item is None and name in properties and name not in required and not takes_null(part):
            continue
        kept[name] = _without_nulls(item, part)
    return kept


def takes_null(schema: Any) -> bool:
    """Whether null is one of the values that a schema names."""
    if not isinstance(schema, Mapping):
        return schema is True
    kind = schema.get("type")
    if kind is not None:
        return kind == "null" or (isinstance(kind, list) and "null" in kind)
    if "enum" in schema:
        return None in schema["enum"]
    if "const" in schema:
        return schema["const"] is None
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return any(map(takes_null, branches))
    return not schema.keys() & {"$ref", "allOf", "not"}


_DETAILS: dict[str, tuple[Went, str]] = {
    "rules": ("text", "learned rules are a sentence each, and narrow the schema"),
    "usage_rules": ("text", "usage rules stand behind the summary"),
    "tags": ("dropped", "labels have no place"),
    "result": ("dropped", "the schema of the result has no place"),
    "effects": ("dropped", "what the tool does to the world has no place"),
    "pre": ("dropped", "preconditions have no place"),
    "post": ("dropped", "postconditions have no place"),
    "text": ("dropped", "conditions in words have no place"),
    "complexity": ("dropped", "the cost has no place"),
    "examples": ("dropped", "worked calls have no place"),
    "body": ("dropped", "the program of the composite has no place"),
}


def lost_parts(definition: ToolDefinition, *, kept: Iterable[str] = ()) -> Iterator[Loss]:
    """What of a definition a format does not carry as it is.

    Args:
        definition: The tool.
        kept: Parts that the format does have a place for.
    """
    said, told = definition.description, definition.specification
    present = {
        "rules": told.rules,
        "usage_rules": said.usage_rules,
        "tags": said.tags,
        "result": definition.signature.result is not None,
        "effects": definition.signature.effects.to_json(),
        "pre": told.pre,
        "post": told.post,
        "text": told.text,
        "complexity": told.complexity,
        "examples": definition.examples,
        "body": definition.is_composite,
    }
    skipped = frozenset(kept)
    for part, (went, detail) in _DETAILS.items():
        if present[part] and part not in skipped:
            yield Loss(tool=definition.name, keyword=part, went=went, detail=detail)


def renamed(definition: ToolDefinition, name: str) -> Iterator[Loss]:
    """That a tool has another name in a format, where it has."""
    if name != definition.name:
        detail = f"the name is {name!r}; Rendering.names maps it back"
        yield Loss(tool=definition.name, keyword="name", went="changed", detail=detail)


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


class References:
    """The references of one schema document, which formats without them have written out.

    Args:
        root: What local references point into.
    """

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self.count = 0

    def entered(
        self, schema: JsonObject, path: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """A schema without a reference at its top; what stands beside the reference wins.

        Args:
            schema: One that may hold ``$ref``.
            path: References that were followed on the way here.

        Returns:
            The schema, and the path into it.

        Raises:
            RecursiveReference: A reference was followed before, or leads nowhere.
        """
        self.count += 1
        given = dict(schema)
        while isinstance(reference := given.get("$ref"), str):
            if reference in path:
                raise RecursiveReference(reference)
            del given["$ref"]
            target = resolve_local(self._root, reference)
            if not isinstance(target, Mapping):
                raise RecursiveReference(reference)
            path = (*path, reference)
            given = {**target, **given}
        return given, path
