"""``TOOLS``: twelve tools that demand what their definitions do not say, read from ``tools.yaml``.

What a tool demands is a rule (``agentkit.tools.rules``) that its definition lacks; learned, it is
the repair that evolution can find at best.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal, TypeAlias

import yaml

from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Rule, rule_from_json

ConstraintKind = Literal["enum", "unit", "form", "condition", "requires", "call_before"]


World: TypeAlias = Literal["first", "swapped"]
"""Which demands hold. Tools, texts and questions are the same in both; gold answers are not."""

WORLDS: tuple[World, ...] = ("first", "swapped")


@dataclass(frozen=True, kw_only=True, slots=True)
class Filling:
    """Something that a question says in plain words.

    Attributes:
        words: The words.
        gold: The arguments that they stand for, in each world.
    """

    words: str
    gold: Mapping[World, JsonObject]


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A place in the questions about a tool.

    Attributes:
        name: Its name in the templates.
        fillings: What may stand there.
        is_entity: Whether the fillings are many and free, such as names, so that each belongs to
            one split alone. Others, such as four ways to pay, occur in every split.
    """

    name: str
    fillings: tuple[Filling, ...]
    is_entity: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class HiddenTool:
    """A tool that demands more than its definition says.

    Attributes:
        definition: What a model is told; the same in both worlds.
        kind: What kind of demand it has.
        demands: What the executor demands, in each world.
        templates: Questions, with slots in braces.
        slots: What the slots may hold.
        lookups: The tool whose result the question's call needs, in each world; empty for most.
    """

    definition: ToolDefinition
    kind: ConstraintKind
    demands: Mapping[World, Rule]
    templates: tuple[str, ...]
    slots: tuple[Slot, ...]
    lookups: Mapping[World, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name


def defined(
    name: str,
    summary: str,
    parameters: Mapping[str, Sequence[str]],
    *,
    optional: Iterable[str] = (),
) -> ToolDefinition:
    """A definition out of its parameters' types and texts.

    Args:
        name: The tool's name.
        summary: What it does.
        parameters: By name: the JSON type, or the allowed words with bars between; and the text.
        optional: Names of those that may be left out.
    """
    left_out = set(optional)
    schema = {
        "type": "object",
        "properties": {
            key: {**_schema(kind), "description": text} for key, (kind, text) in parameters.items()
        },
        "required": [key for key in parameters if key not in left_out],
    }
    return ToolDefinition.from_schema(name, summary, schema)


def _schema(kind: str) -> JsonObject:
    if "|" in kind:
        return {"type": "string", "enum": kind.split("|")}
    return {"type": kind}


def _slot(name: str, told: Any) -> Slot:
    """Entities that are said as they are given, or words with what they stand for in each world."""
    if isinstance(told, list):
        said = {str(value): (value, value) for value in told}
    else:
        said = told["fillings"]
    fillings = []
    for words, pair in said.items():
        gold = [one if isinstance(one, dict) else {name: one} for one in pair]
        fillings.append(Filling(words=words, gold=dict(zip(WORLDS, gold, strict=True))))
    is_entity = isinstance(told, list) or told["is_entity"]
    return Slot(name=name, fillings=tuple(fillings), is_entity=is_entity)


def _read() -> dict[str, HiddenTool]:
    text = resources.files(__package__).joinpath("tools.yaml").read_text(encoding="utf-8")
    return {
        name: HiddenTool(
            definition=defined(
                name, told["summary"], told["parameters"], optional=told.get("optional", ())
            ),
            kind=told["kind"],
            demands={world: rule_from_json(one) for world, one in told["demands"].items()},
            templates=tuple(told["templates"]),
            slots=tuple(_slot(key, one) for key, one in told["slots"].items()),
            lookups=told.get("lookups", {}),
        )
        for name, told in yaml.safe_load(text).items()
    }


TOOLS: Mapping[str, HiddenTool] = _read()
"""The tools that demand something, by name."""

LOOKUPS: dict[str, ToolDefinition] = {
    "find_customer": defined(
        "find_customer", "Find a customer.", {"name": ("string", "Name of the person.")}
    ),
    "find_contract": defined(
        "find_contract", "Find a contract.", {"name": ("string", "Name of the person.")}
    ),
}
"""Tools without demands, whose results others need."""

_LETTERS = {"find_customer": "C", "find_contract": "K"}


def looked_up(tool: str, name: str) -> str:
    """What a lookup tells of a person: the same whenever it is asked.

    Example:
        >>> looked_up("find_customer", "Ann Lee") == looked_up("find_contract", "Ann Lee")
        False
    """
    number = zlib.crc32(f"{tool} {name.casefold()}".encode()) % 9000 + 1000
    return f"{_LETTERS[tool]}-{number}"
