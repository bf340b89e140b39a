"""``Rendering``: tools in a format of others, and what that format could not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

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

    @property
    def is_of_schema(self) -> bool:
        """Whether it is a keyword of the arguments' schema, rather than a part of a definition."""
        return self.place != ""

    def to_json(self) -> dict[str, str]:
        """The loss as a JSON object."""
        names = ("tool", "keyword", "place", "went", "detail")
        return {name: getattr(self, name) for name in names}


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


Renderer: TypeAlias = Callable[..., Rendering]
"""Takes tools, and ``strict`` where the format has it; gives a ``Rendering``."""


def definitions_of(tools: Library | Iterable[Tool | ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """The definitions of whatever holds tools, each name once."""
    library = tools if isinstance(tools, Library) else Library(tools)
    return library.definitions


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
