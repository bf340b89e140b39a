"""``TOOLS``: twelve tools that demand what their definitions do not say, read from ``tools.yaml``.

What a tool demands is checked by code of its own. Each kind also knows the learned rule
(``agentkit.tools.rules``) that would state it: the repair that evolution can find at best. The
check does not use that rule, so that a test can hold the two against each other.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal, TypeAlias

import yaml

from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Between, CallBefore, Condition, Form, OneOf, Requires, Rule

ConstraintKind = Literal["enum", "unit", "form", "condition", "requires", "call_before"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """A call that the world took.

    Attributes:
        tool: Its tool.
        arguments: Its arguments.
        told: What it returned, as text; empty when nothing is to be learned from it.
    """

    tool: str
    arguments: JsonObject
    told: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A parameter takes one of a few values.

    Attributes:
        parameter: Its name.
        values: What it takes.
    """

    parameter: str
    values: tuple[str | int, ...]
    kind: ConstraintKind = "enum"

    def takes(self, arguments: JsonObject, _before: Sequence[Accepted]) -> bool:
        """Whether the value is in the list."""
        return arguments.get(self.parameter) in self.values

    @property
    def rule(self) -> Rule:
        """The list as a learned rule."""
        return OneOf(parameter=self.parameter, values=self.values)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """A whole number in a unit of the tool's own, between two bounds and in steps.

    Attributes:
        parameter: Its name.
        minimum: Smallest value.
        maximum: Largest value.
        step: Every value is a multiple of it.
        unit: What is counted, in words.
    """

    parameter: str
    minimum: int
    maximum: int
    step: int
    unit: str
    kind: ConstraintKind = "unit"

    def takes(self, arguments: JsonObject, _before: Sequence[Accepted]) -> bool:
        """Whether the number is one of the tool's steps."""
        return arguments.get(self.parameter) in range(self.minimum, self.maximum + 1, self.step)

    @property
    def rule(self) -> Rule:
        """The range as a learned rule."""
        return Between(
            parameter=self.parameter,
            minimum=self.minimum,
            maximum=self.maximum,
            multiple_of=self.step,
            unit=self.unit,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Shaped:
    """A text has a form.

    Attributes:
        parameter: Its name.
        pattern: What the whole text matches.
        words: The form in words.
        example: A text that has it; no question asks for it.
    """

    parameter: str
    pattern: str
    words: str
    example: str
    kind: ConstraintKind = "form"

    def takes(self, arguments: JsonObject, _before: Sequence[Accepted]) -> bool:
        """Whether the text has the form."""
        return re.fullmatch(self.pattern, str(arguments.get(self.parameter)), re.ASCII) is not None

    @property
    def rule(self) -> Rule:
        """The form as a learned rule."""
        return Form(
            parameter=self.parameter, pattern=self.pattern, words=self.words, example=self.example
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """A choice that a number decides.

    Attributes:
        parameter: The choice.
        number: The parameter that decides.
        limit: The largest number that is small.
        small: The choice up to there.
        large: The choice above.
        words: The whole in words.
    """

    parameter: str
    number: str
    limit: int
    small: str
    large: str
    words: str
    kind: ConstraintKind = "condition"

    def takes(self, arguments: JsonObject, _before: Sequence[Accepted]) -> bool:
        """Whether the choice is the one that the number wants."""
        wanted = self.large if arguments[self.number] > self.limit else self.small
        return bool(arguments[self.parameter] == wanted)

    @property
    def rule(self) -> Rule:
        """The dependency as a learned rule."""
        is_large = f"{self.number} > {self.limit}"
        large, small = (f'{self.parameter} == "{one}"' for one in (self.large, self.small))
        return Condition(
            expression=f"{is_large} and {large} or not {is_large} and {small}", words=self.words
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Together:
    """When one parameter is given, another must be too.

    Attributes:
        parameter: The one.
        other: The other.
    """

    parameter: str
    other: str
    kind: ConstraintKind = "requires"

    def takes(self, arguments: JsonObject, _before: Sequence[Accepted]) -> bool:
        """Whether both are there, or the first is not."""
        return self.parameter not in arguments or self.other in arguments

    @property
    def rule(self) -> Rule:
        """The dependency as a learned rule."""
        return Requires(parameter=self.parameter, others=(self.other,))


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFirst:
    """A value is what an earlier call of another tool told.

    The learned rule is a little laxer than that: it takes a part of what was told as well.

    Attributes:
        parameter: Where the value goes.
        tool: Whose result it comes from.
    """

    parameter: str
    tool: str
    kind: ConstraintKind = "call_before"

    def takes(self, arguments: JsonObject, before: Sequence[Accepted]) -> bool:
        """Whether an earlier call of that tool told the value."""
        value = str(arguments.get(self.parameter)).strip().casefold()
        return any(one.tool == self.tool and value == one.told.casefold() for one in before)

    @property
    def rule(self) -> Rule:
        """The order as a learned rule."""
        return CallBefore(tool=self.tool, parameter=self.parameter)


Constraint: TypeAlias = Listed | Counted | Shaped | Chosen | Together | FoundFirst

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
        demands: What the executor demands, in each world.
        templates: Questions, with slots in braces.
        slots: What the slots may hold.
        lookups: The tool whose result the question's call needs, in each world; empty for most.
    """

    definition: ToolDefinition
    demands: Mapping[World, Constraint]
    templates: tuple[str, ...]
    slots: tuple[Slot, ...]
    lookups: Mapping[World, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name

    @property
    def kind(self) -> ConstraintKind:
        """What kind of demand it is."""
        return self.demands["first"].kind


_KINDS: Mapping[ConstraintKind, Any] = {
    "enum": Listed,
    "unit": Counted,
    "form": Shaped,
    "condition": Chosen,
    "requires": Together,
    "call_before": FoundFirst,
}


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


def _demand(kind: ConstraintKind, told: Mapping[str, Any]) -> Constraint:
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in told.items()}
    made: Constraint = _KINDS[kind](**values)
    return made


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
            demands={w: _demand(told["kind"], one) for w, one in told["demands"].items()},
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
