"""Expressions over values, the pre- and postconditions of tools (L3) made of them, learned rules.

A condition is an expression of the composite language over the parameters; a postcondition may
also read ``result``. One that cannot be read or evaluated counts as violated, with the reason:
a contract is never true by accident. Conditions in words (``Specification.text``) never gate.

A rule was learned from evidence and may be less than the whole truth, so it refuses only what it
can judge: a condition whose parameters are not given, or that cannot be evaluated, is no reason,
nor is an earlier call that nobody knows of. Before anybody relies on a rule it is held against the
contract that it narrows, the other rules of the tool, its worked examples, and the library.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf
from typing import Any, Literal, NoReturn

from agentkit.composites.guards import ACTIVATION, METER, OUTERMOST, Frame, Meter, fail
from agentkit.composites.interpreter import FrameLayout, Lowering
from agentkit.composites.language import names_in
from agentkit.composites.parser import parse_expression
from agentkit.composites.problems import CONTRACT_LIMITS, CompositeLimits
from agentkit.errors import CompositeError, CompositeRunError, ContractViolation, UsageError
from agentkit.messages import JsonObject, ToolFailure
from agentkit.tools.canonical import is_finite
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import close_to, path_text, plain_text, value_text
from agentkit.tools.patterns import why_unsafe
from agentkit.tools.rules.checking import holds, missing_call, nearest_allowed
from agentkit.tools.rules.records import (
    Between,
    CallBefore,
    Condition,
    EarlierCall,
    Form,
    OneOf,
    Requires,
    Rule,
    Takes,
    why_malformed,
)
from agentkit.tools.rules.rendering import demand, keywords
from agentkit.tools.schema import (
    Steps,
    allowed_types,
    for_same_value,
    parts_at,
    path_steps,
    values_at,
)
from agentkit.tools.schema_validator import fits

_LIMITS = CompositeLimits()


class Expression:
    """An expression of the composite language without calls of tools.

    It is lowered once, so that it may be evaluated for every row of a table.

    Attributes:
        text: As it was written.
        names: The names that it may read.
        reads: Those that it does read.

    Example:
        >>> large = Expression.parse('row["amount"] > 10 and row["region"] == "EU"', names=["row"])
        >>> large.evaluate({"row": {"amount": 12, "region": "EU"}})
        True
    """

    __slots__ = ("_cost", "_evaluate", "_places", "_program", "_template", "names", "reads", "text")

    def __init__(self, program: ast.expr, *, text: str, names: Sequence[str]) -> None:
        self.text = text
        self.names = tuple(names)
        slots = FrameLayout(names)
        lowering = Lowering(slots)
        self._evaluate = lowering.lower(program)
        self._cost = lowering.nodes
        used = names_in(program)
        self.reads = tuple(name for name in self.names if name in used)
        self._places = tuple((name, slots.of(name)) for name in self.reads)
        self._program = program
        self._template: Frame = [None] * slots.size
        self._template[ACTIVATION] = OUTERMOST

    @classmethod
    def parse(
        cls, text: str, names: Sequence[str], *, limits: CompositeLimits | None = None
    ) -> Expression:
        """Read an expression.

        Args:
            text: One expression of the composite language.
            names: The names that it may read.
            limits: Caps on the text.

        Raises:
            CompositeError: It is outside the language; ``problems`` says where and why.
        """
        return cls(parse_expression(text, names, limits=limits), text=text, names=names)

    def evaluate(self, values: Mapping[str, Any], *, limits: CompositeLimits | None = None) -> Any:
        """The value of the expression.

        Args:
            values: By name, at least what the expression reads; JSON data.
            limits: Caps on this evaluation.

        Raises:
            CompositeRunError: An operation failed, or a limit was reached.
            UsageError: A name that the expression reads has no value.
        """
        frame = self._template.copy()
        meter = frame[METER] = Meter(limits or _LIMITS)
        for name, place in self._places:
            try:
                frame[place] = values[name]
            except KeyError:
                self._complain(name, values)
        meter.fuel -= self._cost
        if meter.fuel < 0:
            fail(frame, self._program, meter.over("fuel"))
        return self._evaluate(frame)

    def _complain(self, name: str, values: Mapping[str, Any]) -> NoReturn:
        names = ", ".join(map(repr, values)) or "nothing"
        message = f"the expression `{self.text}` reads {name!r}, but was given {names}"
        raise UsageError(message) from None


# --- conditions of tools --------------------------------------------------------------------------


def check_pre(definition: ToolDefinition, arguments: Mapping[str, Any]) -> ContractViolation | None:
    """The first precondition that does not hold for the arguments of a call; None when all do.

    A parameter that is left out has the default of its schema. A composite keeps the conditions of
    its children ready; this reads them again at each call.

    Args:
        definition: The tool.
        arguments: By parameter name; JSON data.

    Example:
        >>> from agentkit.tools.decorator import tool
        >>> @tool(pre=["b != 0"])
        ... def div(a: float, b: float) -> float:
        ...     '''A quotient.'''
        ...     return a / b
        >>> check_pre(div.definition, {"a": 1, "b": 2})
        >>> print(check_pre(div.definition, {"a": 1, "b": 0}))
        div: the precondition `b != 0` does not hold for b = 0
    """
    return Conditions(definition).before(arguments)


def check_post(
    definition: ToolDefinition, arguments: Mapping[str, Any], result: Any
) -> ContractViolation | None:
    """The first postcondition that does not hold for a call and its result; None when all do."""
    return Conditions(definition).after(arguments, result)


class Conditions:
    """The conditions of one tool, read at the first check and kept."""

    def __init__(self, definition: ToolDefinition) -> None:
        self._definition = definition
        self._names = tuple(definition.signature.properties)
        self._defaults = _defaults(definition)

    @cached_property
    def _pre(self) -> Sequence[tuple[str, Expression | str]]:
        return _read(self._definition.specification.pre, self._names)

    @cached_property
    def _post(self) -> Sequence[tuple[str, Expression | str]]:
        return _read(self._definition.specification.post, (*self._names, "result"))

    def before(
        self, arguments: Mapping[str, Any], *, path: Sequence[str] = ()
    ) -> ContractViolation | None:
        """The first precondition that does not hold; ``path`` ends in the tool's own name."""
        return self._first("precondition", self._pre, {**self._defaults, **arguments}, path)

    def after(
        self, arguments: Mapping[str, Any], result: Any, *, path: Sequence[str] = ()
    ) -> ContractViolation | None:
        """The first postcondition that does not hold."""
        values = {**self._defaults, **arguments, "result": result}
        return self._first("postcondition", self._post, values, path)

    def _first(
        self,
        kind: Literal["precondition", "postcondition"],
        conditions: Sequence[tuple[str, Expression | str]],
        values: Mapping[str, Any],
        path: Sequence[str],
    ) -> ContractViolation | None:
        limits = _limits_of_each(len(conditions))
        for text, expression in conditions:
            read = values if isinstance(expression, str) else expression.reads
            shown = {name: values[name] for name in read if name in values}
            reason = _broken(expression, values, shown, limits)
            if reason:
                name = self._definition.name
                path = tuple(path) or (name,)
                return ContractViolation(
                    f"{' → '.join(path)}: the {kind} `{text}` {reason}",
                    code=kind,
                    tool_name=name,
                    condition=text,
                    values=shown,
                    path=path,
                )
        return None


def _defaults(definition: ToolDefinition) -> JsonObject:
    """The defaults of omitted parameters, as far as the contract gives them."""
    return {
        name: schema["default"]
        for name, schema in definition.signature.properties.items()
        if isinstance(schema, dict) and "default" in schema  # true and false are schemas as well
    }


def _read(texts: Iterable[str], names: Sequence[str]) -> Sequence[tuple[str, Expression | str]]:
    """Conditions, lowered; one that cannot be read has the reason instead."""
    read: list[tuple[str, Expression | str]] = []
    for text in texts:
        try:
            read.append((text, Expression.parse(text, names)))
        except CompositeError as error:
            problem = error.problems[0] if error.problems else error
            read.append((text, f"cannot be read: {problem}"))
    return read


_FULL = 4


@lru_cache
def _limits_of_each(count: int) -> CompositeLimits:
    """Those of each of so many conditions, so that all together cost no more than a few."""
    return replace(CONTRACT_LIMITS, fuel=CONTRACT_LIMITS.fuel * _FULL // max(count, _FULL) or 1)


def _broken(
    expression: Expression | str,
    values: Mapping[str, Any],
    shown: Mapping[str, Any],
    limits: CompositeLimits,
) -> str:
    """Why a condition does not hold, as the end of a sentence; empty when it does."""
    if isinstance(expression, str):
        return expression
    try:
        if expression.evaluate(values, limits=limits):
            return ""
    except (CompositeRunError, UsageError) as error:
        return f"cannot be evaluated: {error}"
    assignments = ", ".join(f"{name} = {plain_text(value)}" for name, value in shown.items())
    return f"does not hold for {assignments}" if assignments else "does not hold"


# --- one call -------------------------------------------------------------------------------------

_Path = tuple[str | int, ...]


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
        self._defaults = _defaults(definition)
        self.wanted_before = frozenset(
            rule.tool for rule in self._rules if isinstance(rule, CallBefore)
        )
        parameters = definition.known_signature.parameters
        self._steps: dict[str, Steps] = {}  # of each parameter that the contract has
        conditions = [rule.expression for rule in self._rules if isinstance(rule, Condition)]
        names = tuple(definition.known_signature.properties)
        self._expressions = dict(_read(conditions, names))
        self._limits = _limits_of_each(len(conditions))
        for rule in self._rules:
            if not isinstance(rule, Condition | Requires) and parts_at(parameters, rule.parameter):
                self._steps[rule.parameter] = path_steps(parameters, rule.parameter)

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
            if failure := self._failure(rule, arguments, earlier):
                return failure
        return None

    def _failure(
        self, rule: Rule, arguments: JsonObject, earlier: Sequence[EarlierCall] | None
    ) -> ToolFailure | None:
        match rule:
            case OneOf() | Between() | Form():
                for path, value in self._values(rule.parameter, arguments):
                    if not holds(rule, value):
                        shown = f"`{path_text(path)}` {demand(rule)}, got {value_text(value)}"
                        return self._broken(rule, shown, path, nearest_allowed(rule, value))
            case Requires() if rule.parameter in arguments:
                for name in rule.others:
                    if name not in arguments:
                        shown = f"`{name}` must be given too when `{rule.parameter}` is given"
                        return self._broken(rule, shown, (name,))
            case Takes(required=True) if rule.parameter not in arguments:
                return self._broken(rule, f"`{rule.parameter}` must be given", (rule.parameter,))
            case Condition():
                return self._unmet(rule, arguments)
            case CallBefore() if earlier is not None:
                values = self._values(rule.parameter, arguments)
                missing = missing_call(rule, values, earlier)
                return None if missing is None else self._broken(rule, *missing)
        return None

    def _values(self, parameter: str, arguments: JsonObject) -> list[tuple[_Path, Any]]:
        """The values of a parameter with their paths; none of one that the contract lacks."""
        steps = self._steps.get(parameter)
        return [] if steps is None else list(values_at(arguments, steps))

    def _unmet(self, rule: Condition, arguments: JsonObject) -> ToolFailure | None:
        expression = self._expressions[rule.expression]
        if isinstance(expression, str):  # it refuses nothing; ``rule_problems`` tells
            return None
        values = {**self._defaults, **arguments}
        try:
            if expression.evaluate(values, limits=self._limits):
                return None
        except (CompositeRunError, UsageError):  # a parameter is not given, or is not a number
            return None
        assignments = " and ".join(
            f"{name} = {plain_text(values[name])}" for name in expression.reads
        )
        shown = f"{rule.words.rstrip('.')}, got {assignments}"
        return self._broken(rule, shown, expression.reads[:1])

    def _broken(
        self, rule: Rule, sentence: str, path: _Path, nearest: tuple[str, ...] = ()
    ) -> ToolFailure:
        has_schema = bool(path) and not isinstance(rule, CallBefore)
        place = "".join("[]" if isinstance(step, int) else f".{step}" for step in path)[1:]
        parts = parts_at(self.definition.parameters_schema, place) if has_schema else []
        return ToolFailure(
            kind="contract_violated",
            rule=sentence,
            path=path_text(path),
            schema_excerpt=next((one for one in parts if isinstance(one, Mapping)), None),
            nearest=nearest,
            cause=rule.kind,
        )


# --- what is wrong with a rule --------------------------------------------------------------------

_ADVICE: Mapping[str, str] = {
    "code_declares": "Declare the parameter in the code.",
    "contradiction": "Drop the rule, or the rule that it contradicts.",
    "example_breaks_rule": "Widen the rule until the calls that went well are allowed.",
    "expression_unreadable": "Use the composite language.",
    "malformed": "Give rules in the form of agentkit.tools.rules, and fill them in.",
    "outside_contract": "List only values that the schema allows; a rule cannot widen it.",
    "own_example": "Give an example that has it.",
    "pattern_unsafe": "Use characters, classes such as [A-Z], and counts such as {2} or {1,8}.",
    "unknown_parameter": "It has none.",
    "unknown_tool": "Name a tool as the library does.",
    "wrong_type": "Use a kind of rule that speaks of the type that the schema declares.",
}
"""Problems of a rule, and how to fix them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleProblem:
    """One reason against a rule.

    Attributes:
        code: What is wrong.
        message: The same in a sentence, with the names and values concerned.
        advice: What to do instead.
    """

    code: str
    message: str
    advice: str


def rule_problems(
    rule: Rule, definition: ToolDefinition, library: Container[str] = ()
) -> tuple[RuleProblem, ...]:
    """The problems of a rule for a tool; empty when it is valid.

    Args:
        rule: The rule; anything else in its place is a problem, never an exception. Whether
            ``definition`` has it already makes no difference.
        definition: The tool with the other rules that are to hold.
        library: The tools that there are, by name; a ``Library`` will do.

    Example:
        >>> from agentkit.tools import OneOf
        >>> loan = ToolDefinition.from_schema(
        ...     "loan", "", {"properties": {"periods": {"type": "integer"}}}
        ... )
        >>> rule_problems(OneOf(parameter="periods", values=(36, 48)), loan)
        ()
        >>> (problem,) = rule_problems(OneOf(parameter="term", values=(36,)), loan)
        >>> problem.message, problem.advice
        ('loan has no parameter term', 'It has periods.')
    """
    if why := why_malformed(rule):
        return (_problem("malformed", why),)
    match rule:
        case OneOf() | Between() | Form():
            found = [*_misplaced(rule.parameter, definition)] or [*_misfit(rule, definition)]
        case Requires():
            known = definition.known_signature.properties
            names = (name for name in (rule.parameter, *rule.others) if name not in known)
            found = [_unknown(name, definition) for name in names]
        case Condition():
            found = [*_condition(rule, definition)]
        case CallBefore():
            found = [*_order(rule, definition, library)]
        case Takes():
            found = [*_discovery(rule, definition)]
    return tuple(found or _breaking_example(rule, definition))


def _problem(code: str, message: str, advice: str = "") -> RuleProblem:
    return RuleProblem(code=code, message=message, advice=advice or _ADVICE[code])


def _misplaced(parameter: str, definition: ToolDefinition) -> Iterator[RuleProblem]:
    """Why the parameter of a rule is nowhere."""
    if not parts_at(definition.known_signature.parameters, parameter):
        yield _unknown(parameter, definition)


def _unknown(parameter: str, definition: ToolDefinition) -> RuleProblem:
    names = tuple(definition.known_signature.properties)
    near = close_to(parameter, names) or names[:8]
    advice = f"It has {', '.join(near)}." if near else ""
    return _problem("unknown_parameter", f"{definition.name} has no parameter {parameter}", advice)


_MEASURED = {"value": "number", "length": "string", "items": "array"}
"""The JSON type that a range of each measure speaks of."""


def _misfit(rule: OneOf | Between | Form, definition: ToolDefinition) -> Iterator[RuleProblem]:
    """What speaks against a rule on values: its pattern, the contract, the other rules."""
    contract = definition.known_signature.parameters
    parts = parts_at(contract, rule.parameter)
    if isinstance(rule, OneOf):
        for value in rule.values:
            if all(fits(value, part, root=contract) is False for part in parts):
                why = f"the schema does not allow {value_text(value)} for {rule.parameter}"
                yield _problem("outside_contract", why)
                return
    else:
        kind = _MEASURED["length" if isinstance(rule, Form) else rule.measure]
        kinds = {kind, "integer"} if kind == "number" else {kind}
        if not any(allowed_types(part, root=contract) & kinds for part in parts):
            yield _problem("wrong_type", f"{rule.parameter} is never a {kind}")
            return
    if isinstance(rule, Form):
        if rule.pattern and (why := why_unsafe(rule.pattern)):
            shown = f"the pattern {rule.pattern[:80]!r} cannot be used: {why}"
            yield _problem("pattern_unsafe", shown)
            return
        if rule.example and not holds(rule, rule.example):
            yield _problem(
                "own_example", f"its example {rule.example!r:.80} does not have the form"
            )
    others = [
        keywords(other)
        for other in definition.specification.rules
        if isinstance(other, OneOf | Between | Form)
        and not why_malformed(other)
        and other.parameter == rule.parameter
    ]
    stated = [keywords(rule), *others]
    if all(_is_impossible([part, *stated], contract) for part in parts):
        shown = f"no value is left for {rule.parameter} of {definition.name} by all that must hold"
        yield _problem("contradiction", shown)


_BOUNDS = (
    (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")),
    (("minLength",), ("maxLength",)),
    (("minItems",), ("maxItems",)),
)


def _is_impossible(schemas: Sequence[Any], root: JsonObject) -> bool:
    """Whether schemas that hold together leave no value.

    Listed values are tried one by one, and bounds are compared; steps and patterns are not.
    """
    stated = [one for schema in schemas for one in for_same_value(schema, root, "allOf")]
    for one in stated:
        listed = [one["const"]] if "const" in one else one.get("enum")
        if isinstance(listed, list):
            return not any(
                all(fits(value, schema, root=root) is not False for schema in schemas)
                for value in listed
            )
    return any(_numbers(stated, low, max) > _numbers(stated, high, min) for low, high in _BOUNDS)


def _numbers(
    stated: Sequence[JsonObject], keys: Sequence[str], tightest: Callable[..., float]
) -> float:
    """The tightest of the bounds of one side; one that bounds nothing where there is none."""
    found = (one.get(key) for one in stated for key in keys)
    numbers = [one for one in found if isinstance(one, int | float) and is_finite(one)]
    return tightest(numbers, default=-inf if tightest is max else inf)


def _condition(rule: Condition, definition: ToolDefinition) -> Iterator[RuleProblem]:
    shown = f"`{rule.expression[:80]}`"
    try:
        expression = Expression.parse(rule.expression, (*definition.known_signature.properties,))
    except CompositeError as error:
        problem = error.problems[0] if error.problems else None
        why = f"{shown} cannot be read: {problem or error}"
        yield _problem("expression_unreadable", why, problem.advice if problem else "")
        return
    if not expression.reads:
        yield _problem("malformed", f"{shown} reads no parameter")


def _order(
    rule: CallBefore, definition: ToolDefinition, library: Container[str]
) -> Iterator[RuleProblem]:
    if rule.tool == definition.name:
        yield _problem("malformed", "the tool would have to be called before itself")
    elif rule.tool not in library:
        yield _problem("unknown_tool", f"there is no tool {rule.tool!r:.80} in the library")
    if rule.parameter:
        yield from _misplaced(rule.parameter, definition)


def _discovery(rule: Takes, definition: ToolDefinition) -> Iterator[RuleProblem]:
    """Only what nobody declared is there to be discovered."""
    name = rule.parameter
    if is_declared_by_code(definition):
        shown = f"the code of {definition.name} declares its parameters, and no call adds {name}"
        yield _problem("code_declares", shown)
    elif not parts_at(with_rules_alone(definition, (rule,)).known_signature.parameters, name):
        yield _problem("outside_contract", f"the schema has no room for a parameter {name}")
    elif name in definition.signature.properties and not rule.types and not rule.required:
        yield _problem("malformed", f"the rule says nothing: the schema has {name}")


def with_rules_alone(definition: ToolDefinition, rules: Iterable[Rule]) -> ToolDefinition:
    """The tool with these rules alone; discovered parameters stay, and demand nothing."""
    rules = tuple(rules)
    stated = {one.parameter for one in rules if isinstance(one, Takes)}
    known = (one for one in definition.specification.rules if isinstance(one, Takes))
    left = (replace(one, required=False) for one in known if one.parameter not in stated)
    specification = replace(definition.specification, rules=(*left, *rules))
    return replace(definition, specification=specification)


def is_declared_by_code(definition: ToolDefinition) -> bool:
    """Whether code of the project declares the parameters, so that there is none to discover."""
    return definition.is_composite or definition.origin.kind in {"function", "pydantic"}


def _breaking_example(rule: Rule, definition: ToolDefinition) -> Iterator[RuleProblem]:
    """A worked example is a call that went well, so a rule that refuses it is wrong."""
    checker = RuleChecker(with_rules_alone(definition, (rule,)))
    for at, example in enumerate(definition.worked_calls):
        arguments: Any = example.arguments
        if not isinstance(arguments, Mapping):
            continue  # the example is not a call, which is not the fault of the rule
        if failure := checker.refusal(arguments):
            shown = f"example {at} of {definition.name} breaks it: {failure.rule}"
            yield _problem("example_breaks_rule", shown)
            return
