"""The parts of a definition that a format for models has no place for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentkit.export.renderers.rendering import Loss, Went
from agentkit.tools.definition import ToolDefinition

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
