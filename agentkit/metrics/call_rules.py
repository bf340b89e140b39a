"""Which calls a gold call allows; the rules stand in ``allowed_values``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics.argument_rules import ArgumentRule, argument_rule
from agentkit.metrics.argument_types import (
    LISTS,
    ArgumentType,
    GivenValue,
    Language,
    argument_type,
    is_object,
)
from agentkit.metrics.remembering import remembered
from agentkit.tools.definition import ToolDefinition

MismatchKind = Literal[
    "wrong_tool",  # the call names another tool
    "malformed_arguments",  # the argument text is not a JSON object
    "missing_argument",  # an argument that must be given is not there
    "unexpected_argument",  # an argument that neither the tool nor the gold call knows
    "wrong_type",  # not of the declared type, nor of the type of the allowed values
    "wrong_value",  # of the right type, but none of the allowed values
]


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedCall:
    """A gold call.

    Attributes:
        name: The tool.
        allowed: The allowed values of each argument; ``""`` among them: may be left out.
    """

    name: str
    allowed: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mismatch:
    """One reason why a call is not the expected one.

    Attributes:
        kind: What is wrong.
        argument: The argument in question; empty when it is the call as a whole.
        value: What was given.
        allowed: What would have been right.
    """

    kind: MismatchKind
    argument: str = ""
    value: Any = None
    allowed: tuple[Any, ...] = ()

    def __str__(self) -> str:
        where = f"argument {self.argument!r}: " if self.argument else ""
        given = "" if self.kind == "missing_argument" else f", got {_shown(self.value)}"
        wanted = f", allowed {_shown(list(self.allowed))}" if self.allowed else ""
        return f"{where}{self.kind.replace('_', ' ')}{given}{wanted}"


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldProblem:
    """Why no call can match a gold call.

    Attributes:
        expected: Its index among the gold calls.
        tool: The tool that it names.
        reason: What is wrong with it, in words that continue its name.
        argument: The argument in question; empty when it is the call as a whole.
        allowed: What gold lists for the argument.
    """

    expected: int
    tool: str
    reason: str
    argument: str = ""
    allowed: Any = None

    def __str__(self) -> str:
        return f"gold call {self.expected} {self.reason}"


GivenArguments: TypeAlias = Mapping[str, GivenValue | None]
"""The arguments of a call, ready to be compared; None for one that the tool does not take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredArguments:
    """What a tool declares for its arguments.

    Attributes:
        required: Arguments that it requires.
        types: The type of each argument that it takes.
    """

    required: tuple[str, ...]
    types: Mapping[str, ArgumentType]

    @classmethod
    def of(cls, definition: ToolDefinition, language: Language | None) -> DeclaredArguments:
        """What a tool declares, where values are written in ``language``."""
        # Types of other languages stand in the origin, by which definitions do not differ.
        return _of_json(definition) if language is None else _of_source(definition, language)

    def read(self, call: ToolCall) -> GivenArguments | None:
        """The arguments of a call; None when they could not be read."""
        if call.malformed is not None:
            return None
        types = self.types
        return {
            name: types[name].read(value) if name in types else None
            for name, value in call.arguments.items()
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRule:
    """A gold call as it is compared.

    Attributes:
        name: The tool.
        must: Arguments that must be given.
        rules: What each argument that may be given may be.
        allowed: The allowed values, for the reasons.
    """

    name: str
    must: tuple[str, ...]
    rules: Mapping[str, ArgumentRule] = field(repr=False)
    allowed: Mapping[str, Sequence[Any]]

    def fits(self, given: GivenArguments) -> bool:
        """Whether these are the arguments of the gold call; stops at the first that is not."""
        rules = self.rules
        for name, value in given.items():
            rule = rules.get(name)
            if rule is None or value is None or rule.fault(value) is not None:
                return False
        return all(name in given for name in self.must)

    def distance(self, given: GivenArguments, below: float = math.inf) -> int:
        """The number of mismatches that keep arguments from being those of the gold call.

        Args:
            given: The arguments.
            below: Counting stops here, when only a smaller number is of interest.
        """
        wrong = 0
        for name in self.must:
            wrong += name not in given
        rules = self.rules
        for name, value in given.items():
            if wrong >= below:
                break
            rule = rules.get(name)
            wrong += rule is None or value is None or rule.fault(value) is not None
        return wrong

    def mismatches(self, call: ToolCall, given: GivenArguments | None) -> tuple[Mismatch, ...]:
        """All that keeps a call from being the gold call; empty when it is.

        Args:
            call: The call.
            given: Its arguments as the gold call's tool reads them; None where it does not.
        """
        if call.name != self.name:
            return (Mismatch(kind="wrong_tool", value=call.name, allowed=(self.name,)),)
        if given is None:
            return (Mismatch(kind="malformed_arguments", value=call.malformed),)
        return tuple(self._wrong_arguments(call.arguments, given))

    def _wrong_arguments(self, stated: JsonObject, given: GivenArguments) -> Iterator[Mismatch]:
        for name in self.must:
            if name not in given:
                allowed = tuple(self.allowed.get(name, ()))
                yield Mismatch(kind="missing_argument", argument=name, allowed=allowed)
        for name, value in given.items():
            rule = self.rules.get(name)
            kind: MismatchKind | None = "unexpected_argument"
            if rule is not None and value is not None:
                kind = rule.fault(value)
            if kind is not None:
                allowed = tuple(self.allowed.get(name, ()))
                yield Mismatch(kind=kind, argument=name, value=stated[name], allowed=allowed)

    def problems(self, expected: int) -> Iterator[GoldProblem]:
        """Arguments that must be given, and for which no value is right."""
        for name in self.must:
            rule = self.rules.get(name)
            if rule is None and name in self.allowed:
                reason = f"lists the argument {name!r}, which {self.name!r} does not take"
            elif rule is None:
                reason = f"allows no value for the argument {name!r}, which {self.name!r} requires"
            elif not rule.can_be_met():
                reason = f"allows no value for {name!r} that {self.name!r} could be given"
            else:
                continue
            yield GoldProblem(
                expected=expected,
                tool=self.name,
                reason=reason,
                argument=name,
                allowed=self.allowed.get(name),
            )


@remembered()
def _of_json(definition: ToolDefinition) -> DeclaredArguments:
    return _of_source(definition, None)


def _of_source(definition: ToolDefinition, language: Language | None) -> DeclaredArguments:
    signature = definition.signature
    source = _schemas((definition.origin.original or {}).get("properties"))
    schemas = _schemas(signature.properties)
    return DeclaredArguments(
        required=tuple(signature.required),
        types={
            name: argument_type(schemas.get(name, {}), source=source.get(name), language=language)
            for name in signature.properties
        },
    )


def call_rule(gold: AllowedCall, declared: DeclaredArguments) -> CallRule:
    """The rule for one gold call, whose allowed values are lists (see ``unreadable``)."""
    required, types = declared.required, declared.types
    return CallRule(
        name=gold.name,
        must=tuple(
            [
                name
                for name in dict.fromkeys((*required, *gold.allowed))
                if name in required or "" not in gold.allowed[name]
            ]
        ),
        rules={
            name: argument_rule(types[name], allowed)
            for name, allowed in gold.allowed.items()
            if name in types
        },
        allowed=gold.allowed,
    )


def _schemas(properties: object) -> Mapping[str, JsonObject]:
    """The schemas of parameters by name; ``true``, which allows anything, and oddities are none."""
    if not isinstance(properties, Mapping):
        return {}
    return {name: part for name, part in properties.items() if is_object(part)}


def unreadable(
    expected: int, gold: AllowedCall, definition: ToolDefinition | None
) -> GoldProblem | None:
    """Why a gold call can not even be compared with; None when it can."""
    if definition is None:
        reason = f"names the tool {gold.name!r}, which is not among the definitions"
        return GoldProblem(expected=expected, tool=gold.name, reason=reason)
    arguments: object = gold.allowed  # from a file: it may be anything
    if not isinstance(arguments, Mapping):
        reason = f"lists no arguments by name but {_shown(arguments):.80}"
        return GoldProblem(expected=expected, tool=gold.name, reason=reason)
    for name, allowed in arguments.items():
        if not isinstance(allowed, LISTS):
            reason = f"has no list of allowed values for {name!r} but {_shown(allowed):.80}"
            return GoldProblem(
                expected=expected, tool=gold.name, reason=reason, argument=name, allowed=allowed
            )
    return None


def _shown(value: object) -> str:
    try:
        return repr(value)
    except (RecursionError, ValueError):  # hundreds of levels, or thousands of digits
        return f"{type(value).__name__} that is too large to be shown"
