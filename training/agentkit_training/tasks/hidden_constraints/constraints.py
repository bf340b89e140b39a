"""What a tool demands without saying so, checked by code of its own.

Each kind also knows the learned rule (``agentkit.tools.rules``) that would state it: the repair
that evolution can find at best. The check here does not use that rule, so that a test can hold the
two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentkit.messages import JsonObject
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
