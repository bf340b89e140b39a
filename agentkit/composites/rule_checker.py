"""Learned rules against one call, before it runs: the refusal says which rule, and what is allowed.

A rule was learned from evidence and may be less than the whole truth, so it refuses only what it
can judge: a condition whose parameters are not given, or that can not be evaluated, is no reason,
nor is an earlier call that nobody knows of.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from agentkit.composites.contracts import Expression
from agentkit.composites.problems import CONTRACT_LIMITS
from agentkit.errors import CompositeError, CompositeRunError, UsageError
from agentkit.messages import JsonObject, ToolFailure
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import path_text, value_text
from agentkit.tools.rules.checking import EarlierCall, holds, missing_call, nearest_allowed
from agentkit.tools.rules.records import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    Rule,
)
from agentkit.tools.rules.rendering import demand
from agentkit.tools.schema import Steps, excerpt, places, values_at

_Path = tuple[str | int, ...]


class _Broken(NamedTuple):
    """A rule that a call breaks: in a sentence, where, and what would be allowed."""

    sentence: str
    path: _Path = ()
    nearest: tuple[str, ...] = ()


class RuleChecker:
    """The learned rules of one tool, made ready once.

    Args:
        definition: The tool.

    Attributes:
        definition: The tool.
        wanted_before: The tools that must be called before it.

    Example:
        >>> from agentkit.tools.definition import Signature, Specification
        >>> from agentkit.tools.rules import OneOf
        >>> loan = ToolDefinition(
        ...     name="loan",
        ...     signature=Signature(parameters={"properties": {"periods": {"type": "integer"}}}),
        ...     specification=Specification(
        ...         rules=(OneOf(parameter="periods", values=(36, 48, 60)),)
        ...     ),
        ... )
        >>> failure = RuleChecker(loan).refusal({"periods": 40})
        >>> failure.rule, failure.nearest
        ('`periods` must be one of 36, 48, 60, got the number 40', ('36', '48', '60'))
    """

    def __init__(self, definition: ToolDefinition) -> None:
        self.definition = definition
        self._rules = definition.specification.rules
        self.wanted_before = frozenset(
            rule.tool for rule in self._rules if isinstance(rule, CallBefore)
        )
        parameters = definition.signature.parameters
        self._steps: dict[str, Steps] = {}  # of each parameter that the contract has
        self._expressions: dict[str, Expression] = {}  # of each condition that can be read
        for rule in self._rules:
            if isinstance(rule, Condition):
                self._read(rule.expression)
            elif not isinstance(rule, Requires) and (ways := places(parameters, rule.parameter)):
                self._steps[rule.parameter] = next(iter(ways))

    def _read(self, expression: str) -> None:
        names = tuple(self.definition.signature.properties)
        with suppress(CompositeError):  # it refuses nothing; ``rule_problems`` tells
            self._expressions[expression] = Expression.parse(expression, names)

    def refusal(
        self, arguments: JsonObject, earlier: Sequence[EarlierCall] | None = None
    ) -> ToolFailure | None:
        """The first rule that a call breaks, as a failure that the model may correct.

        Args:
            arguments: As they satisfy the contract.
            earlier: The calls that succeeded before this one; None when they are not known, and
                then nothing is said about them.
        """
        for rule in self._rules:
            broken = self._broken(rule, arguments, earlier)
            if broken is not None:
                return self._failure(rule, broken)
        return None

    def _broken(
        self, rule: Rule, arguments: JsonObject, earlier: Sequence[EarlierCall] | None
    ) -> _Broken | None:
        match rule:
            case OneOf() | Between() | Form():
                for path, value in self._values(rule.parameter, arguments):
                    if not holds(rule, value):
                        shown = f"`{path_text(path)}` {demand(rule)}, got {value_text(value)}"
                        return _Broken(shown, path, nearest_allowed(rule, value))
            case Requires() if rule.parameter in arguments:
                for name in rule.others:
                    if name not in arguments:
                        shown = f"`{name}` must be given too when `{rule.parameter}` is given"
                        return _Broken(shown, (name,))
            case Condition():
                return self._unmet(rule, arguments)
            case CallBefore() if earlier is not None:
                given = self._values(rule.parameter, arguments)
                missing = missing_call(rule, given, earlier)
                return None if missing is None else _Broken(*missing)
        return None

    def _values(self, parameter: str, arguments: JsonObject) -> list[tuple[_Path, Any]]:
        """The values of a parameter with their paths; none of one that the contract lacks."""
        steps = self._steps.get(parameter)
        return [] if steps is None else list(values_at(arguments, steps))

    def _unmet(self, rule: Condition, arguments: JsonObject) -> _Broken | None:
        expression = self._expressions.get(rule.expression)
        if expression is None:
            return None
        values = {**self._defaults, **arguments}
        try:
            if expression.evaluate(values, limits=CONTRACT_LIMITS):
                return None
        except (CompositeRunError, UsageError):  # a parameter is not given, or is no number
            return None
        given = " and ".join(f"{name} = {_value_shown(values[name])}" for name in expression.reads)
        return _Broken(f"{rule.words.rstrip('.')}, got {given}", expression.reads[:1])

    @cached_property
    def _defaults(self) -> JsonObject:
        """What parameters that are left out have, as far as the contract says."""
        properties = self.definition.signature.properties.items()
        return {
            name: schema["default"]
            for name, schema in properties
            if isinstance(schema, dict)
            and "default" in schema  # true and false are schemas as well
        }

    def _failure(self, rule: Rule, broken: _Broken) -> ToolFailure:
        has_schema = bool(broken.path) and not isinstance(rule, CallBefore)
        offered = self.definition.parameters_schema
        return ToolFailure(
            kind="contract_violated",
            rule=broken.sentence,
            path=path_text(broken.path),
            schema_excerpt=excerpt(offered, broken.path) if has_schema else None,
            nearest=broken.nearest,
            cause=rule.kind,
        )


def _value_shown(value: Any) -> str:
    return value_text(value).removeprefix("the number ").removeprefix("the string ")
