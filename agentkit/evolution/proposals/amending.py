"""A tool's definition with what a block says of it, contract included.

A block that gives a parameter another type, or one that is not there, is not refused here: the
candidate gets a changed signature, and structural validation says that the contract is immutable.
So the rejection is on record as what it is, a wrong change, and not as an answer nobody could read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentkit.evolution.proposals.block_fields import (
    BlockFields,
    ParameterWords,
    UnreadableBlockError,
)
from agentkit.evolution.proposals.blocks import unreadable
from agentkit.tools.definition import Description, ToolDefinition
from agentkit.tools.schema import copied

_TYPES = {
    "str": "string",
    "string": "string",
    "text": "string",
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "double": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "tuple": "array",
    "dict": "object",
    "object": "object",
    "null": "null",
    "none": "null",
}
_SAYS_NO_TYPE = frozenset({"", "any", "optional", "required"})
_LIST_OF = re.compile(r"(?:list|array)(?:\[(\w+)\]|\s+of\s+(\w+?)s?)")
_OPTIONAL = re.compile(r"optional\[(.*)\]")
_DEEPEST = 32


def amended(base: ToolDefinition, said: BlockFields) -> ToolDefinition:
    """The definition as it would be.

    Worked calls stay as they are, since a model can not know what a call returns. Only when the
    block gives another first one does the candidate take the block's, for validation to refuse.

    Raises:
        UnreadableBlockError: A type is no word that we know, or a path leads through what is no
            object.
    """
    description, specification = base.description, base.specification
    texts = {path: words.text for path, words in said.parameters.items() if words.text is not None}
    parameters = dict(description.parameters) | {path: text for path, text in texts.items() if path}
    return replace(
        base,
        signature=replace(base.signature, parameters=_schema(base, said.parameters)),
        description=Description(
            summary=description.summary if said.summary is None else said.summary,
            tags=description.tags if said.tags is None else said.tags,
            parameters={path: text for path, text in parameters.items() if text},
            usage_rules=description.usage_rules if said.usage_rules is None else said.usage_rules,
        ),
        specification=(
            specification if said.rules is None else replace(specification, rules=said.rules)
        ),
        examples=_examples(base, said),
    )


def _examples(base: ToolDefinition, said: BlockFields) -> tuple[Any, ...]:
    if not said.examples or not base.examples:
        return base.examples
    is_kept = dict(said.examples[0].arguments) == dict(base.examples[0].arguments)
    return base.examples if is_kept else said.examples


def _schema(base: ToolDefinition, said: Mapping[str, ParameterWords]) -> Any:
    """The parameters schema, changed only where the block says something else."""
    schema: dict[str, Any] = copied(base.signature.parameters)
    for path, words in said.items():
        part = _at(schema, path)
        for keyword, value in words.keywords.items():
            if keyword == "type":
                _take_type(part, value, path)
            elif keyword not in {"title", "examples"} and part.get(keyword) != value:
                part[keyword] = value
    return schema if schema != base.signature.parameters else base.signature.parameters


def _at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """The part of a schema that governs a parameter; made where there is none."""
    if not path:
        return schema
    properties = _object(schema.setdefault("properties", {}), path)
    if path in properties:
        return _object(properties[path], path)
    steps = path.split(".")
    if len(steps) > _DEEPEST:
        raise UnreadableBlockError(
            unreadable("wrong_place", f"a path has {len(steps)} steps", path, field="parameters")
        )
    part = schema
    for step in steps:
        name = step.rstrip("[]")
        part = _object(_object(part.setdefault("properties", {}), path).setdefault(name, {}), path)
        for _ in range(step.count("[]")):
            part = _object(part.setdefault("items", {}), path)
    return part


def _object(part: Any, path: str) -> dict[str, Any]:
    if not isinstance(part, dict):
        why = f"the path {path[:60]!r} leads through a schema that is no object"
        raise UnreadableBlockError(unreadable("wrong_place", why, path, field="parameters"))
    return part


def _take_type(part: dict[str, Any], given: Any, path: str) -> None:
    """Declare the given type, unless it is declared already or nothing is."""
    outer, inner = _json_types(given, path)
    declared = part.get("type")
    known = set(declared) if isinstance(declared, list) else {declared} - {None}
    is_new_parameter = not part
    if outer and (is_new_parameter or (known and not outer <= known)):
        part["type"] = min(outer) if len(outer) == 1 else sorted(outer)
    items = part.get("items")
    if inner and isinstance(items, dict) and items.get("type") not in {None, inner}:
        part["items"] = {**items, "type": inner}


def _json_types(given: Any, path: str) -> tuple[set[str], str]:
    """The types that a word or a list of words stands for, and that of a list's items."""
    if isinstance(given, list):
        return set().union(*(_json_types(one, path)[0] for one in given)), ""
    words = str(given).strip().casefold()
    optional = _OPTIONAL.fullmatch(words)
    words = optional[1] if optional else words
    outer: set[str] = set()
    inner = ""
    for word in re.split(r"\s*(?:,|\||\bor\b)\s*", words):
        listed = _LIST_OF.fullmatch(word)
        if listed:
            outer.add("array")
            inner = _TYPES.get(listed[1] or listed[2], "")
        elif word in _TYPES:
            outer.add(_TYPES[word])
        elif word not in _SAYS_NO_TYPE:
            why = f"{str(given)[:60]!r} is no type of JSON"
            raise UnreadableBlockError(
                unreadable("unknown_type", why, path, field=f"parameters.{path[:60]}")
            )
    return outer, inner
