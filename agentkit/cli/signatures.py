"""A definition for people: in one line, and in full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from agentkit.cli.output import Column, print_table
from agentkit.evaluation.results.texts import visible
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import rule_sentence


def signature_line(definition: ToolDefinition) -> str:
    """``city: string, days?: integer``; a question mark means optional."""
    required = set(definition.signature.required)
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {type_words(schema)}"
        for name, schema in definition.signature.properties.items()
    )


def type_words(schema: Any) -> str:
    """The type of one parameter in a few words."""
    if not isinstance(schema, Mapping):
        return "any"
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return " | ".join(type_words(branch) for branch in branches)
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(map(str, kind))
    if kind == "array":
        return f"list of {type_words(schema.get('items'))}"
    return str(kind)


def render_definition(definition: ToolDefinition) -> None:
    """Print everything that is known about a tool."""
    click.echo(visible(definition.name))
    click.echo(f"\n{visible(definition.text) or '(no description)'}\n")
    rows = list(_parameters(definition))
    if rows:
        columns = [
            Column(title="parameter", fit="fold"),
            Column(title="type", fit="fold"),
            Column(title="required"),
            Column(title="default", fit="fold"),
            Column(title="meaning", fit="fold"),
        ]
        print_table(columns, rows)
        click.echo()
    else:
        click.echo("no parameters\n")
    for title, value in _facts(definition):
        click.echo(f"{title:<9}{visible(value)}")


def _parameters(definition: ToolDefinition) -> Iterator[tuple[str, ...]]:
    texts = definition.description.parameters
    required = set(definition.signature.required)
    for name, schema in definition.signature.properties.items():
        default = _default(schema)
        needed = "yes" if name in required else "no"
        yield (
            name,
            type_words(schema),
            needed,
            default,
            " ".join(filter(None, (texts.get(name, ""), _bounds(schema)))),
        )
        for path, text in texts.items():
            if path.startswith((f"{name}.", f"{name}[")):
                yield f"  {path}", "", "", "", text


_PHRASES = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "at least of length",
    "maxLength": "at most of length",
    "minItems": "at least of length",
    "maxItems": "at most of length",
    "pattern": "like the regular expression",
    "format": "in the format",
    "const": "exactly",
}
"""What keywords say of a value, behind *must be*."""


def _bounds(schema: Any) -> str:
    """What a value must be, beyond its type."""
    if not isinstance(schema, Mapping):
        return ""
    told = [f"{_PHRASES[key]} {value}" for key, value in schema.items() if key in _PHRASES]
    return f"Must be {', '.join(told)}." if told else ""


def _default(schema: Any) -> str:
    has_one = isinstance(schema, Mapping) and "default" in schema  # a schema may also be true
    return json.dumps(schema["default"], ensure_ascii=False) if has_one else ""


def _facts(definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    signature, origin = definition.signature, definition.origin
    if signature.result is not None:
        words = _is_told_by_words(signature.result)
        yield "returns", type_words(signature.result) if words else _compact(signature.result)
    effects = ", ".join(
        name if holds else f"not {name}" for name, holds in signature.effects.to_json().items()
    )
    yield "effects", effects or "not declared"
    if definition.description.tags:
        yield "tags", ", ".join(definition.description.tags)
    for condition in definition.specification.pre:
        yield "before", condition
    for condition in definition.specification.post:
        yield "after", condition
    for rule in definition.specification.rules:
        yield "learned", f"{rule_sentence(rule)} ({rule.kind})"
    for example in definition.examples:
        result = _compact(example.result) if example.is_whole else "(not kept)"
        yield "example", f"{_compact(example.arguments)} -> {result}"
    yield "origin", " ".join(filter(None, (origin.kind, origin.reference, origin.licence)))
    if origin.original_name:
        yield "named", f"{origin.original_name} at its origin"
    yield "digest", definition.digest


def _is_told_by_words(schema: Any) -> bool:
    """Whether the words for a type leave nothing of its schema out."""
    if not isinstance(schema, Mapping):
        return True
    return schema.keys() <= {"type", "items"} and _is_told_by_words(schema.get("items"))


def _compact(value: JsonObject | Any) -> str:
    return json.dumps(value, ensure_ascii=False)
