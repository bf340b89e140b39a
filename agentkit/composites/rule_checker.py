"""Learned rules against one call, before it runs: the refusal says which rule, and what is allowed.

A rule was learned from evidence and may be less than the whole truth, so it refuses only what it
can judge: a condition whose parameters are not given, or that can not be evaluated, is no reason,
nor is an earlier call that nobody knows of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, TypeAlias

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

_Check: TypeAlias = Callable[[JsonObject, Sequence[EarlierCall] | None], ToolFailure | None]


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
        checks = map(self._check_of, definition.specification.rules)
        self._checks = [check for check in checks if check is not None]
        self.wanted_before = frozenset(
            rule.tool for rule in definition.specification.rules if isinstance(rule, CallBefore)
        )

    def refusal(
        self, arguments: JsonObject, earlier: Sequence[EarlierCall] | None = None
    ) -> ToolFailure | None:
        """The first rule that a call breaks, as a failure that the model may mend.

        Args:
            arguments: As they satisfy the contract.
            earlier: The calls that succeeded before this one; None when they are not known, and
                then nothing is said about them.
        """
        for check in self._checks:
            failure = check(arguments, earlier)
            if failure is not None:
                return failure
        return None

    def _check_of(self, rule: Rule) -> _Check | None:
        """How a rule is checked; None for one about a parameter that the contract does not have."""
        parameters = self.definition.signature.parameters
        match rule:
            case OneOf() | Between() | Form():
                ways = places(parameters, rule.parameter)
                return partial(self._value, rule, next(iter(ways))) if ways else None
            case Requires():
                return partial(self._others, rule)
            case Condition():
                expression = self._parsed(rule)
                return None if expression is None else partial(self._condition, rule, expression)
            case CallBefore():
                ways = places(parameters, rule.parameter)
                return partial(self._call_before, rule, next(iter(ways), None))

    def _value(
        self, rule: OneOf | Between | Form, steps: Steps, arguments: JsonObject, _earlier: object
    ) -> ToolFailure | None:
        for path, value in values_at(arguments, steps):
            if not holds(rule, value):
                sentence = f"`{path_text(path)}` {demand(rule)}, got {value_text(value)}"
                return self._failure(rule, sentence, path, nearest_allowed(rule, value))
        return None

    def _others(
        self, rule: Requires, arguments: JsonObject, _earlier: object
    ) -> ToolFailure | None:
        if rule.parameter not in arguments:
            return None
        for name in rule.others:
            if name not in arguments:
                sentence = f"`{name}` must be given too when `{rule.parameter}` is given"
                return self._failure(rule, sentence, (name,))
        return None

    def _parsed(self, rule: Condition) -> Expression | None:
        try:
            return Expression.parse(rule.expression, self._names)
        except CompositeError:
            return None

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.definition.signature.properties)

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

    def _condition(
        self, rule: Condition, expression: Expression, arguments: JsonObject, _earlier: object
    ) -> ToolFailure | None:
        values = {**self._defaults, **arguments}
        try:
            if expression.evaluate(values, limits=CONTRACT_LIMITS):
                return None
        except (CompositeRunError, UsageError):  # a parameter is not given, or is no number
            return None
        given = " and ".join(f"{name} = {_value_shown(values[name])}" for name in expression.reads)
        sentence = f"{rule.words.rstrip('.')}, got {given}"
        return self._failure(rule, sentence, expression.reads[:1])

    def _call_before(
        self,
        rule: CallBefore,
        steps: Steps | None,
        arguments: JsonObject,
        earlier: Sequence[EarlierCall] | None,
    ) -> ToolFailure | None:
        if earlier is None:
            return None
        given = [] if steps is None else list(values_at(arguments, steps))
        missing = missing_call(rule, given, earlier)
        if missing is None:
            return None
        sentence, path = missing
        return self._failure(rule, sentence, path, schema=False)

    def _failure(
        self,
        rule: Rule,
        sentence: str,
        path: tuple[str | int, ...],
        nearest: tuple[str, ...] = (),
        *,
        schema: bool = True,
    ) -> ToolFailure:
        offered = self.definition.parameters_schema
        return ToolFailure(
            kind="contract_violated",
            rule=sentence,
            path=path_text(path),
            schema_excerpt=excerpt(offered, path) if path and schema else None,
            nearest=nearest,
            cause=rule.kind,
        )


def _value_shown(value: Any) -> str:
    return value_text(value).removeprefix("the number ").removeprefix("the string ")
